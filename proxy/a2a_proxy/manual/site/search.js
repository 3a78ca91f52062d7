// In the language of the search, a dash before a word leaves out all pages with the word. Options begin with dashes: pages
// must have all words of an option.
{
  const typed = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  const require = (_, space, option) => space + option.replace(/\w+/g, "+$&").replace(/-/g, " ");
  Object.defineProperty(document.querySelector(".md-search__input"), "value", {
    get() { return typed.get.call(this).replace(/(^|\s)-+(\w[\w-]*)/g, require); },
    set(text) { typed.set.call(this, text); },
  });
}
