"use strict";
// Without this script all failures are shown; with it, the lists above them narrow the choice.
for (const form of document.querySelectorAll("form.filter")) {
  const cards = [...document.getElementById(form.dataset.cards).children];
  const status = form.querySelector("[role=status]");
  const apply = () => {
    const wanted = [...form.querySelectorAll("select")].map((list) => list.value).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const tags = card.dataset.tags.split(" ");
      card.hidden = !wanted.every((one) => tags.includes(one));
      shown += card.hidden ? 0 : 1;
    }
    status.textContent = status.dataset.text.replace("#", shown);
  };
  form.hidden = false;
  form.addEventListener("change", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
