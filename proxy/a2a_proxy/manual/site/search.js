// In the language of the search, a dash before a word leaves out all pages with the word. Options begin with dashes.
{
  const typed = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  Object.defineProperty(document.querySelector(".md-search__input"), "value", {
    get() { return typed.get.call(this).replace(/(^|\s)-+(?=\w)/g, "$1"); },
    set(text) { typed.set.call(this, text); },
  });
}
