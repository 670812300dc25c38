package windowed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/window"
)

// The parts of a window operator's snapshot. Bounds of windows stand in every entry, so
// entries can be dealt out by key group whatever the windows are.
//
//	layout    union   which windows these are: kind of operator, assigner
//	ended     union   up to when windows have ended in each subtask
//	windows   keyed   the contents, an entry per key and window (slice, session), or
//	                  per key in the general operator
//	runs      keyed   what of them was on disk, if anything, in a snapshot that stands alone;
//	                  see spilling
//	spilled   union   instead of that, in one that is incremental, the files; see image.go
//	states    union   what the fingerprints in the entries of the general operator mean
//	timers-event, timers-clock
//	          keyed   its timers
const (
	layoutPart = "layout"
	// EndedPart is what Flink does not have: without it windows are restored, but not
	// their time.
	EndedPart   = "ended"
	windowsPart = "windows"
	// runsPart has its entries in the format of windowsPart. Those of a key and window are in
	// the order in which their records arrived, before those of the entry in windowsPart.
	runsPart   = "runs"
	statesPart = "states"

	partVersion = 1
)

// The kinds of window operators, by what they keep. State of one kind does not fit
// another.
const (
	kindPanes    = "a table per window"
	kindSlices   = "a table per slice of time"
	kindSessions = "sessions"
	kindGeneral  = "windows with timers"
)

// storage turns what a window operator keeps into entries and back.
type storage[K comparable, A any] struct {
	keys     *keyed.KeyCodec[K]
	contents contentsCodec[A]
}

// openStorage prepares for checkpoints and a budget for memory, if there are any; err says
// that there is no codec of contents.
func (c *core[K, T, A]) openStorage(contents contentsCodec[A], err error) error {
	c.description = c.Assigner.String()
	if !c.rt.Checkpointing && c.rt.Restored == nil && c.rt.StateMemory == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := keyed.NewKeyCodec[K](c.rt.MaxParallelism)
	if err != nil {
		return fmt.Errorf("windows: %w", err)
	}
	c.storage = &storage[K, A]{keys, contents}
	return nil
}

// entryWriter writes the entries of one part of one snapshot.
type entryWriter[K comparable, A any] struct {
	*storage[K, A]
	part keyed.PartNumber
}

// windowsWriter begins the part with the contents.
func (c *core[K, T, A]) windowsWriter(s *keyed.Snapshot) (*entryWriter[K, A], error) {
	part, err := s.Part(c.storage.part(windowsPart))
	return &entryWriter[K, A]{c.storage, part}, err
}

// part describes a part with contents.
func (s *storage[K, A]) part(name string) snapshot.Part {
	return snapshot.Part{
		Name: name, Kind: snapshot.Keyed, Version: partVersion,
		Schemas: map[string]string{"key": s.keys.Schema(), s.contents.role(): s.contents.schema()},
	}
}

// flagFired marks an entry of a session that has fired.
const flagFired = 1

// window writes the contents of a window, or slice, of one key.
func (w *entryWriter[K, A]) window(to *keyed.Encoder, of window.TimeWindow, flags byte, hash uint64, key *K, acc *A) error {
	var err error
	to.Data = append(appendWindow(to.Data, of), flags)
	if to.Data, err = w.keys.Append(to.Data, key); err != nil {
		return fmt.Errorf("key of window %v: %w", of, err)
	}
	if to.Data, err = w.contents.append(to.Data, acc); err != nil {
		return fmt.Errorf("window %v of key %v: %w", of, *key, err)
	}
	w.end(to, hash)
	return nil
}

// end ends an entry of a key with that hash.
func (w *entryWriter[K, A]) end(to *keyed.Encoder, hash uint64) {
	to.End(w.part, w.keys.Group(hash))
}

// appendWindow appends the bounds: the start, and the length, which wraps around for the
// global window.
func appendWindow(dst []byte, w window.TimeWindow) []byte {
	return binary.AppendVarint(binary.AppendVarint(dst, w.Start), w.End-w.Start)
}

func parseWindow(data []byte) (w window.TimeWindow, rest []byte) {
	start, data := varint(data)
	length, data := varint(data)
	return window.TimeWindow{Start: start, End: start + length}, data
}

// entry is what an entry of the part with the contents holds.
type entry[K comparable, A any] struct {
	window window.TimeWindow
	flags  byte
	hash   uint64
	key    K
	acc    A
}

// visitor takes an entry of a keyed part.
type visitor[K comparable, A any] = func(p *partReader[K, A], group int, data []byte) error

// visitWindows returns what hands the entries of a part with contents to add.
func visitWindows[K comparable, A any](add func(*entry[K, A]) error) visitor[K, A] {
	return func(p *partReader[K, A], group int, data []byte) error {
		var e entry[K, A]
		e.window, data = parseWindow(data)
		if len(data) == 0 {
			return errCutShort
		}
		e.flags, data = data[0], data[1:]
		e.key, e.hash, data = p.key(group, data)
		if p.err != nil {
			return p.err
		}
		if data, p.err = p.contents(data, &e.acc); p.err != nil {
			return p.err
		}
		if len(data) > 0 {
			return fmt.Errorf("%d bytes too many in an entry", len(data))
		}
		return add(&e)
	}
}

// restoreContents hands what is stored of panes to add: what was on disk, in files or in
// entries, and then the rest, so that the contents of a key and window come in the order of
// their records.
func (c *core[K, T, A]) restoreContents(add func(*entry[K, A]) error) error {
	visit := visitWindows(add)
	if err := c.restoreRuns(visit); err != nil {
		return err
	}
	if err := c.storage.read(c.rt.Restored, runsPart, visit); err != nil {
		return err
	}
	return c.storage.read(c.rt.Restored, windowsPart, visit)
}

// partReader decodes the entries of a keyed part.
type partReader[K comparable, A any] struct {
	storage   *storage[K, A]
	decodeKey func([]byte, *K) ([]byte, error)
	contents  func([]byte, *A) ([]byte, error)
	err       error
}

// key reads a key. Its group is that of the entry, or something is wrong with the
// snapshot or with the key's type.
func (p *partReader[K, A]) key(group int, data []byte) (key K, hash uint64, rest []byte) {
	if rest, p.err = p.decodeKey(data, &key); p.err != nil {
		return key, 0, nil
	}
	hash = p.storage.keys.Hash(key)
	if g := p.storage.keys.Group(hash); g != group {
		p.err = fmt.Errorf("key %v is in key group %d but was stored in %d: has the type of the key, or the max parallelism, changed?",
			key, g, group)
	}
	return key, hash, rest
}

// read hands the entries of a keyed part to visit. A part that is not there has none.
func (s *storage[K, A]) read(r snapshot.Reader, name string, visit visitor[K, A]) error {
	part, ok := r.Part(name)
	if !ok {
		return nil
	}
	p, err := s.reader(part.Part())
	if err == nil {
		err = eachEntry(part, func(e snapshot.Entry) error { return visit(p, e.Group, e.Data) })
	}
	return unreadable(r, name, err)
}

// unreadable says of an error what was read and what to do.
func unreadable(r snapshot.Reader, part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint %d cannot be restored: part %q of the windows: %w; "+
		"go back to the types that the job had, or give the operator another uid to start it without its windows",
		r.Checkpoint(), part, err)
}

func eachEntry(part snapshot.PartReader, visit func(snapshot.Entry) error) error {
	if v := part.Part().Version; v != partVersion {
		return fmt.Errorf("it has version %d, and only %d can be read here: was it written by a later release?", v, partVersion)
	}
	for e, err := range part.Entries() {
		if err == nil {
			err = visit(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reader resolves the schemas of a part against those that are wanted.
func (s *storage[K, A]) reader(part snapshot.Part) (*partReader[K, A], error) {
	p := &partReader[K, A]{storage: s}
	var err error
	if p.decodeKey, err = s.keys.Decoder(part.Schemas["key"]); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if part.Name != windowsPart && part.Name != runsPart {
		return p, nil
	}
	role := s.contents.role()
	schema, ok := part.Schemas[role]
	if !ok {
		return nil, fmt.Errorf("no schema for the %s of a window, only %v: has a function that sees all elements, "+
			"or an evictor, become an aggregation or the other way round?", role, part.Schemas)
	}
	if p.contents, err = s.contents.decoder(schema); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	return p, nil
}

// ended is up to when windows have ended in a subtask.
type ended struct {
	subtask, parallelism int64
	// watermark is the operator's, and shown the one that functions see; see core.
	watermark, shown int64
	// clocks are the times up to which overlapping processing-time windows have fired, in
	// the order of the key groups.
	clocks []groupsClock
	// pinned says that the assigner was pinned, and pin how.
	pinned bool
	pin    pin
}

// groupsClock is the time up to which the windows of key groups have fired: those up to
// last that no other groupsClock before it is for.
type groupsClock struct{ last, clock int64 }

// fields lists what is stored of an ended in front of the clocks, in order.
func (e *ended) fields() []*int64 {
	return []*int64{&e.subtask, &e.parallelism, &e.watermark, &e.shown, &e.pin.now, &e.pin.random}
}

func (e *ended) encode() []byte {
	data := []byte{0}
	if e.pinned {
		data[0] = 1
	}
	for _, f := range e.fields() {
		data = binary.AppendVarint(data, *f)
	}
	for _, c := range e.clocks {
		data = binary.AppendVarint(binary.AppendVarint(data, c.last), c.clock)
	}
	return data
}

func decodeEnded(data []byte) (ended, error) {
	if len(data) == 0 {
		return ended{}, errCutShort
	}
	e, data := ended{pinned: data[0] != 0}, data[1:]
	for _, f := range e.fields() {
		*f, data = varint(data)
	}
	for len(data) > 0 {
		var c groupsClock
		c.last, data = varint(data)
		c.clock, data = varint(data)
		e.clocks = append(e.clocks, c)
	}
	if data == nil || e.subtask < 0 || e.subtask >= e.parallelism || e.parallelism > keyed.UpperBoundMaxParallelism {
		return ended{}, errCutShort
	}
	return e, nil
}

// beginSnapshot writes what all window operators have, and returns the snapshot to which
// the contents are to be added.
func (c *core[K, T, A]) beginSnapshot(w snapshot.Writer, kind string, clocks ...groupsClock) (*keyed.Snapshot, error) {
	layout := binary.AppendUvarint(nil, uint64(len(kind)))
	layout = append(append(layout, kind...), c.description...)
	times := ended{
		subtask: int64(c.rt.Subtask), parallelism: int64(c.rt.Parallelism),
		watermark: c.watermark, shown: c.context.Watermark, clocks: clocks, pinned: c.pinned, pin: c.pinnedBy,
	}
	if err := errors.Join(writeUnion(w, layoutPart, layout), writeUnion(w, EndedPart, times.encode())); err != nil {
		return nil, err
	}
	return keyed.NewSnapshot(w), nil
}

// writeUnion writes a part of one entry.
func writeUnion(w snapshot.Writer, name string, entry []byte) error {
	p, err := w.Part(snapshot.Part{Name: name, Kind: snapshot.Union, Version: partVersion})
	if err != nil {
		return err
	}
	return errors.Join(p.Append(0, entry), p.Close())
}

// restoreTimes brings back what all window operators have, and returns what the subtasks of
// the earlier run had ended, nil if that is unknown. The contents are to be restored after it.
func (c *core[K, T, A]) restoreTimes(kind string) ([]ended, error) {
	if err := c.checkLayout(kind); err != nil {
		return nil, err
	}
	part, ok := c.rt.Restored.Part(EndedPart)
	if !ok {
		return nil, nil
	}
	var all []ended
	err := eachEntry(part, func(entry snapshot.Entry) error {
		e, err := decodeEnded(entry.Data)
		all = append(all, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d cannot be restored: part %q of the windows: %w", c.rt.Restored.Checkpoint(), EndedPart, err)
	}
	if len(all) > 0 {
		c.resume(all)
	}
	return all, nil
}

// checkLayout refuses state of other windows.
func (c *core[K, T, A]) checkLayout(kind string) error {
	part, ok := c.rt.Restored.Part(layoutPart)
	if !ok {
		return nil
	}
	err := eachEntry(part, func(e snapshot.Entry) error {
		n, data := uvarint(e.Data)
		if uint64(len(data)) < n {
			return errCutShort
		}
		had, assigner := string(data[:n]), string(data[n:])
		switch {
		case assigner != c.description:
			return fmt.Errorf("it holds the windows of %s, and the job has %s now", assigner, c.description)
		case had != kind:
			return fmt.Errorf("it holds %s, and the operator keeps %s now, because a trigger, an evictor, a function's state or "+
				"the kind of aggregation has changed", had, kind)
		default:
			return nil
		}
	})
	if err != nil {
		return fmt.Errorf("checkpoint %d cannot be restored: %w; go back to the windows that the job had, "+
			"or give the operator another uid to start it without its windows", c.rt.Restored.Checkpoint(), err)
	}
	return nil
}

// resume makes the times of an earlier run the operator's: those of the same subtask, or
// with another parallelism the earliest of all. That can only differ where silence has
// closed windows in some subtasks; these windows are open again then, rather than closed
// for keys that were not silent.
func (c *core[K, T, A]) resume(all []ended) {
	first := ended{watermark: math.MaxInt64, shown: math.MaxInt64}
	for _, e := range all {
		if int(e.parallelism) == c.rt.Parallelism && int(e.subtask) == c.rt.Subtask {
			c.resumeAt(e)
			return
		}
		first.watermark, first.shown = min(first.watermark, e.watermark), min(first.shown, e.shown)
	}
	c.resumeAt(first)
}

func (c *core[K, T, A]) resumeAt(e ended) {
	c.watermark, c.closed, c.context.Watermark = e.watermark, e.watermark, e.shown
	if e.pinned {
		c.pin(e.pin)
	}
}
