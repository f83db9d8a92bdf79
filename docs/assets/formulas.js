// Sets the formulas of a page by KaTeX, which is part of the site: assets/katex/LICENSE.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("div.formula")) {
    katex.render(place.textContent, place, { displayMode: true, throwOnError: false });
  }
});
