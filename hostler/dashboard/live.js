// Asks for this page again every now and then, and puts what has changed in place of what was there.
"use strict";

const main = document.querySelector("main");
const note = document.querySelector("#note");

// What a reader has opened, scrolled to and stands on stays so.
function replace(before, after) {
  const ids = before.id ? [before] : [];
  for (const old of [...ids, ...before.querySelectorAll("[id]")]) {
    const same = after.id === old.id ? after : after.querySelector("#" + CSS.escape(old.id));
    if (same && "open" in old) same.open = old.open;
  }
  if (before.isEqualNode(after)) return;
  const seen = [before, ...before.querySelectorAll("[tabindex]")].map((each) => [each.scrollLeft, each.scrollTop]);
  const stood = before.contains(document.activeElement) ? document.activeElement : null;
  before.replaceWith(after);
  [after, ...after.querySelectorAll("[tabindex]")].forEach((each, index) => each.scrollTo(...(seen[index] || [0, 0])));
  const link = stood && stood.getAttribute("href");
  if (link) after.querySelector(`[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
}

function show(fresh) {
  const before = [...main.children];
  const after = [...fresh.children];
  if (before.length !== after.length) main.replaceChildren(...after);
  else before.forEach((each, index) => replace(each, after[index]));
  main.dataset.every = fresh.dataset.every;
}

async function look() {
  if (!document.hidden && !window.getSelection().toString()) {
    try {
      const answer = await fetch(location.href, { cache: "no-store", redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      show(page.querySelector("main"));
      note.textContent = "";
    } catch {
      note.textContent = "This page is no longer live: hostler ui has ended, or cannot be reached.";
    }
  }
  again();
}

function again() {
  const every = Number(main.dataset.every);
  if (every) setTimeout(look, every);
}

again();
