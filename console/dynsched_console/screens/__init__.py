"""The screens of the console, and how to add one.

A screen of many things subclasses `screens.listing.ListScreen[T]` and declares:

- `name_of_place`, which `:name filter` goes to; `columns`, a tuple of `table.Column`
  (its `rank` says which leave first on 80 columns, its `letter` sorts after `s`);
- `fetch(text, cursor, limit)`: a plain blocking call on `self.source` that returns a page `Found`
  (`listing.mapped` puts richer items into one); it runs in a thread, so it touches no widget;
- `key(item)`: the text that names a row for good; cursor, marks and scroll stay with it;
- `vocabulary`: what its filter may ask for (`dynsched.domain.vocabulary`); reading, completion and
  the caret under a mistake follow from it;
- `open_item(item)`: what Enter does, mostly `self.desk.visit(Link(place=..., subject=...))`;
- `empty()`: what to say when nothing is there; say since when, it is a good sign mostly;
- `detail(item)`: lines of the pane that `i` toggles; `copies(item)`: what `y` offers.

A list that cannot be filtered sets `filtered = False` and says what it holds by `title_words()`. A
list that is opened with a filter of its own takes that as its subject, as `DeadScreen` does.

A screen of one thing subclasses `screens.base.SheetScreen` and declares `read()` (blocking, in a
thread) and `rows(answer)` (lines of a `sheet.Sheet`, some with a `Link`).

Keys that change something are bindings whose action is a key of the class's `CHANGES`, a mapping
from the action's name to `dynsched.domain.access.Action`: `check_action` greys them where the
operator may not, and the core refuses them all the same. A change is asked by
`await self.confirm(Change(...))` and made by `await self.change(call)`; only these two in a
`@work` method, so that a failure becomes the banner and the screen is read again.

Every binding needs an `id` (`screen.verb`): operators remap keys by it, and `docs/console.md` lists
them; a test holds that table against the bindings. Texts from a store are `text.Piece`s, never
plain `str` given to a widget, which would parse them as markup.

Then: a line in `places.PLACES`, methods in `source.Source` for what it reads and changes, a stage
and an entry in `tests/console/snapshots.py`, and its lines in `docs/console.md`.
"""
