/* The pages' own script: refreshing without disturbing, keys, ticks, banners. Pages work without it. */
(() => {
  "use strict";
  const body = document.body;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  root.classList.add("has-js");

  /* Refreshing */
  const refreshMs = Number(body.dataset.refresh) * 1000;
  let paused = sessionStorage.getItem("dynsched-paused") === "yes";
  let shownAt = Date.now();
  let trouble = "";

  const live = () => document.querySelectorAll("[data-live]");
  const ticked = () => document.querySelectorAll("input[name=run]:checked");
  const typing = () => {
    const at = document.activeElement;
    return Boolean(at && at.closest("[data-live]") && at.matches("input:not([type=checkbox]), textarea, select"));
  };
  const still = (part) => part.dataset.live === "rows" && ticked().length > 0;

  function refresh(force) {
    if (!window.htmx) return;
    for (const part of live()) {
      if (!force && (still(part) || typing())) continue;
      window.htmx.trigger(part, "refresh");
    }
  }

  function tellAge() {
    const age = byId("age");
    if (!age || !live().length) return;
    const seconds = Math.round((Date.now() - shownAt) / 1000);
    let words = paused ? "paused" : "";
    if (!paused && !window.htmx) words = "";
    else if (!paused && ticked().length && [...live()].some(still)) words = "rows rest while some are ticked";
    else if (!paused && refreshMs && seconds * 1000 > refreshMs + 3000) words = `${seconds} s old`;
    if (age.textContent !== words) age.textContent = words;
  }

  function setPaused(value) {
    paused = value;
    sessionStorage.setItem("dynsched-paused", value ? "yes" : "no");
    const button = byId("pause");
    if (button) {
      button.setAttribute("aria-pressed", String(value));
      button.textContent = value ? "Go on" : "Pause";
    }
    tellAge();
    if (!value) refresh(false);
  }

  function say(words) {
    trouble = words;
    const place = byId("trouble");
    if (!place) return;
    place.textContent = words;
    place.hidden = !words;
  }

  /* What can be done stands above the part that refreshes, and is of the state at which it was made. */
  let asking = false;
  function tellState() {
    const part = document.querySelector("[data-for]");
    const now = part && part.querySelector("[data-state]");
    if (asking || !now || now.dataset.state === part.dataset.for) return;
    const at = document.activeElement;
    const busy = document.querySelector("details.act[open]") || (at && at.closest("main form"));
    if (busy) {
      say("The state has changed meanwhile: load the page again to see what can be done now.");
      return;
    }
    asking = true;
    const done = () => { asking = false; };
    fetch(window.location.href).then((answer) => answer.text()).then((text) => {
      const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-for]");
      if (!fresh) return;
      const above = (node) => [...node.parentNode.childNodes].slice(0, [...node.parentNode.childNodes].indexOf(node));
      for (const node of above(part)) node.remove();
      part.before(...above(fresh));
      part.dataset.for = fresh.dataset.for;
      say("");
    }).then(done, done);
  }

  const clock = () => new Date(shownAt).toLocaleTimeString();
  let slow = 0;
  document.addEventListener("htmx:config:request", (event) => {
    const part = event.detail.ctx.sourceElement;
    if (part.dataset.seen) event.detail.ctx.request.headers["X-Seen"] = part.dataset.seen;
  });
  document.addEventListener("htmx:before:request", () => {
    clearTimeout(slow);
    slow = setTimeout(() => say(`The console is slow to answer. What you see is from ${clock()}.`), 4000);
  });
  document.addEventListener("htmx:finally:request", () => clearTimeout(slow));
  document.addEventListener("htmx:after:request", (event) => {
    const context = event.detail.ctx;
    const status = context.response.status;
    if (status >= 400) return;
    const seen = context.response.headers.get("X-Seen");
    if (seen && context.sourceElement.dataset) context.sourceElement.dataset.seen = seen;
    shownAt = Date.now();
    if (trouble) say("");
    tellState();
    tellAge();
  });
  document.addEventListener("htmx:response:error", (event) => {
    const context = event.detail.ctx;
    const status = context.response.status;
    if (status === 401) say("Your session is over: load the page again and log in. Nothing below is new.");
    else say(`The console answered with ${status}. What you see is from ${clock()}. ${(context.text || "").slice(0, 300)}`);
  });
  document.addEventListener("htmx:error", () => {
    say(`The console cannot be reached. What you see is from ${clock()}.`);
  });
  document.addEventListener("htmx:after:swap", () => { tellTicks(); tellState(); });

  if (refreshMs) {
    setInterval(() => {
      if (!paused && !document.hidden) refresh(false);
    }, refreshMs);
    /* What is under way is looked at more often. */
    if (refreshMs > 2000) {
      setInterval(() => {
        if (!paused && !document.hidden && document.querySelector("[data-running]")) refresh(false);
      }, 2000);
    }
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && !paused) refresh(false);
    });
  }
  setInterval(() => { tellAge(); tellState(); }, 1000);

  /* Ticks */
  let lastTick = null;
  function tellTicks() {
    const words = byId("pick-words");
    const count = ticked().length;
    if (words) {
      const said = count ? `Preview the replay of ${count} ticked` : "Preview the replay of all that match";
      if (words.textContent !== said) words.textContent = said;
    }
    const clear = byId("untick");
    if (clear) clear.hidden = !count;
    tellAge();
  }
  document.addEventListener("change", (event) => {
    if (event.target.matches("input[name=run]")) {
      lastTick = event.target.id;
      tellTicks();
    }
  });
  function tickTo(box) {
    const boxes = [...document.querySelectorAll("input[name=run]")];
    const from = boxes.findIndex((one) => one.id === lastTick);
    const to = boxes.indexOf(box);
    const start = from < 0 ? to : from;
    for (const one of boxes.slice(Math.min(start, to), Math.max(start, to) + 1)) one.checked = true;
    lastTick = box.id;
    tellTicks();
  }

  /* Buttons of this script */
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, summary");
    for (const open of document.querySelectorAll("details.menu[open], details.act[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
    if (!button) return;
    if (button.id === "pause") setPaused(!paused);
    else if (button.id === "own-zone") byId("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    else if (button.id === "untick") {
      for (const one of ticked()) one.checked = false;
      tellTicks();
      refresh(false);
    } else if (button.dataset.copy) copy(button);
  });

  function copy(button) {
    const text = button.dataset.copy;
    const done = () => { button.textContent = "Copied"; };
    const show = () => window.prompt("Copy it from here", text);
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, show);
    else show();
  }

  /* Keys */
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const current = () => {
    const at = document.activeElement;
    return at && at.closest ? at.closest("[data-row]") : null;
  };
  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(current());
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    const link = all[next].querySelector(".row-link") || all[next].querySelector("a, button");
    if (link) {
      link.focus({ preventScroll: true });
      all[next].scrollIntoView({ block: "nearest" });
    }
  }
  function turnTheme() {
    const order = ["system", "dark", "light"];
    const next = order[(order.indexOf(root.dataset.theme) + 1) % order.length];
    root.dataset.theme = next;
    const secure = body.dataset.secure === "on" ? "; secure" : "";
    document.cookie = `dynsched_theme=${next}; path=${body.dataset.path}; max-age=31536000; samesite=strict${secure}`;
    const select = document.querySelector("select[name=theme]");
    if (select) select.value = next;
  }
  function previewReplay() {
    const row = current();
    const form = (row && row.querySelector("form[data-preview]")) || document.querySelector("#pick[data-preview]");
    if (form) form.requestSubmit(form.querySelector("button:not([formaction]):not([disabled])") || undefined);
  }
  let gone = 0;
  const acts = {
    "/": () => { const q = byId("q"); if (q) { q.focus(); q.select(); } },
    j: () => move(1),
    k: () => move(-1),
    x: () => { const box = current() && current().querySelector("input[name=run]"); if (box) box.click(); },
    X: () => { const box = current() && current().querySelector("input[name=run]"); if (box) tickTo(box); },
    e: previewReplay,
    p: () => setPaused(!paused),
    t: turnTheme,
    "?": () => { window.location.href = `${body.dataset.root}/help`; },
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (event.key === "Escape") {
      if (field) field.blur();
      const open = document.querySelector("details.menu[open], details.act[open]");
      if (open) { open.open = false; open.querySelector("summary").focus(); }
      return;
    }
    if (body.dataset.keys !== "on" || field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (Date.now() - gone < 1500) {
      gone = 0;
      const link = document.querySelector(`nav a[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); return; }
    }
    if (event.key === "g") { gone = Date.now(); return; }
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  setPaused(paused);
  tellTicks();
})();
