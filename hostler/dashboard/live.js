// Asks for this page again every now and then, and puts what has changed in place of what was there.
"use strict";

const main = document.querySelector("main");
const note = document.querySelector("#note");

// What a reader has opened, scrolled to and stands on stays so.
function keep(before, after) {
  for (const old of [before, ...before.querySelectorAll("[id]")]) {
    if (!old.id) continue;
    const same = after.id === old.id ? after : after.querySelector("#" + CSS.escape(old.id));
    if (same && "open" in old) same.open = old.open;
  }
  const seen = [before, ...before.querySelectorAll("[tabindex]")].map((each) => [each.scrollLeft, each.scrollTop]);
  const stood = before.contains(document.activeElement) ? document.activeElement : null;
  const link = stood && stood.getAttribute("href");
  return (there) => {
    const scrolled = [there, ...there.querySelectorAll("[tabindex]")];
    if (scrolled.length === seen.length) scrolled.forEach((each, index) => each.scrollTo(...seen[index]));
    if (link) there.querySelector(`[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
  };
}

function replace(before, after) {
  const restore = keep(before, after);
  if (before.isEqualNode(after)) return;
  before.replaceWith(after);
  restore(after);
}

function show(fresh) {
  const before = [...main.children];
  const after = [...fresh.children];
  if (before.length === after.length) {
    before.forEach((each, index) => replace(each, after[index]));
  } else {
    const restore = keep(main, fresh);
    main.replaceChildren(...after);
    restore(main);
  }
  main.dataset.every = fresh.dataset.every;
}

async function look() {
  if (window.getSelection().toString()) {
    note.textContent = "This page stands still while something on it is selected.";
  } else if (!document.hidden) {
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
