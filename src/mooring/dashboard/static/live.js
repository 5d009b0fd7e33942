// Draws a page again that shows another picture than the latest: a picture that is taken between the page and its first
// event, or while an answer is on its way, reaches no page that could draw it.
(() => {
  let latest = null;
  const note = event => { latest = event.data; };
  const events = new EventSource("/events");
  events.addEventListener("hello", note);
  events.addEventListener("picture", note);
  setInterval(() => {
    const shown = document.querySelector("[data-picture]");
    if (shown && latest !== null && shown.dataset.picture !== latest) htmx.trigger(shown, "behind");
  }, 2000);
})();
