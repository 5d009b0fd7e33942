"use strict";
// The scrubber: what stands below it is fetched for each moment, and its address is that of the moment.
(() => {
  let wanted = null, isBusy = false;
  async function show() {
    if (isBusy || wanted === null) return;
    isBusy = true;
    const query = wanted;
    wanted = null;
    try {
      const answer = await fetch(`/time?${query}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), found = page.getElementById("moment");
      const at = document.activeElement && document.activeElement.name, there = document.getElementById("moment");
      if (answer.ok && found && there) {
        there.replaceWith(found);
        history.replaceState(null, "", `/time?${query}`);
        const focused = at && found.querySelector(`[name="${CSS.escape(at)}"]`);
        if (focused) focused.focus();
        document.dispatchEvent(new Event("mooring:moment"));
      }
    } finally {
      isBusy = false;
      show();
    }
  }
  const ask = event => {
    const form = event.target.closest("#scrubber");
    if (!form) return;
    wanted = new URLSearchParams(new FormData(form)).toString();
    show();
  };
  document.addEventListener("input", ask);
})();
