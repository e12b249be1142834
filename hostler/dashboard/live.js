// Asks for this page again every now and then, and puts what is new in place of what is old.
"use strict";

const main = document.querySelector("main");
const note = document.querySelector("#note");

function keep(before, after) {
  for (const section of before.querySelectorAll("details[id]")) {
    const same = after.querySelector("#" + CSS.escape(section.id));
    if (same) same.open = section.open;
  }
}

async function look() {
  let every = Number(main.dataset.every);
  if (!every) return;
  if (!document.hidden && !window.getSelection().toString()) {
    try {
      const answer = await fetch(location.href, { cache: "no-store", redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      note.textContent = "";
      keep(main, fresh);
      if (fresh.innerHTML !== main.innerHTML) main.replaceChildren(...fresh.childNodes);
      main.dataset.every = fresh.dataset.every;
      every = Number(fresh.dataset.every);
    } catch {
      note.textContent = "This page is no longer live: hostler ui has ended, or cannot be reached.";
    }
  }
  if (every) setTimeout(look, every);
}

setTimeout(look, Number(main.dataset.every));
