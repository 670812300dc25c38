package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// Checkpoint is a stored checkpoint or savepoint, open to be read. It is safe for
// concurrent use.
type Checkpoint struct {
	storage  storage
	dir      string
	manifest *Manifest
	segments map[string]*openSegment // by file
	release  func() error
}

// load opens a checkpoint and looks at it from the outside: manifest, and whether all
// files are there with their size and, for segments, the right ends. With a readable
// manifest it returns the checkpoint also with an error.
func load(s storage, dir string) (*Checkpoint, error) {
	m, err := loadManifest(s, dir)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{storage: s, dir: dir, manifest: m, segments: map[string]*openSegment{}}
	if id, _, ok := parseDir(dir); ok && id != m.ID {
		return c, fmt.Errorf("checkpoint: %s has the manifest of checkpoint %d", s.path(dir), m.ID)
	}
	whole, damage, err := c.checkFiles()
	if err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	decompress := newDecompressor()
	var present []*openSegment
	for _, info := range m.Segments {
		segment := &openSegment{storage: s, name: c.segmentName(info), checkpoint: m.ID, info: info, decompress: decompress}
		c.segments[info.File] = segment
		if whole[segment.name] {
			present = append(present, segment)
		}
	}
	damage = append(damage, atOnce(present, (*openSegment).check))
	return c, errors.Join(damage...)
}

// checkFiles looks at which of the checkpoint's files are there with their sizes. damage has an
// error for each of the others.
func (c *Checkpoint) checkFiles() (whole map[string]bool, damage []error, err error) {
	files, err := c.storage.list(c.dir)
	if err == nil && c.manifest.Kind == KindCheckpoint && len(c.manifest.sharedRefs()) > 0 {
		var shared []fileInfo
		shared, err = c.storage.list(sharedDir)
		files = append(files, shared...)
	}
	if err != nil {
		return nil, nil, err
	}
	sizes := map[string]int64{}
	for _, f := range files {
		sizes[f.name] = f.size
	}
	whole = map[string]bool{}
	expect := func(name string, size int64) {
		got, ok := sizes[name]
		switch {
		case !ok:
			damage = append(damage, fmt.Errorf("checkpoint: %s is missing", c.storage.path(name)))
		case got != size:
			damage = append(damage, fmt.Errorf("checkpoint: %s has %d bytes instead of %d: it is damaged", c.storage.path(name), got, size))
		default:
			whole[name] = true
		}
	}
	for _, info := range c.manifest.Segments {
		expect(c.segmentName(info), info.Size)
		for _, ref := range info.Shared {
			expect(c.sharedName(ref), ref.Size)
		}
	}
	return whole, damage, nil
}

func (c *Checkpoint) segmentName(info SegmentInfo) string { return c.dir + "/" + info.File }

func loadManifest(s storage, dir string) (*Manifest, error) {
	name := dir + "/" + manifestName
	data, err := readFile(s, name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		files, listErr := s.list(dir)
		if listErr != nil {
			return nil, fmt.Errorf("checkpoint: %w", listErr)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("checkpoint: there is no checkpoint in %s", s.path(dir))
		}
		return nil, fmt.Errorf("checkpoint: %s: %w: there is no manifest", s.path(dir), ErrUnfinished)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", s.path(name), err)
	}
	m, err := decodeManifest(data)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", s.path(name), err)
	}
	return m, nil
}

// validate checks what the code relies on. The checksum is right, so what this finds
// was written so.
func (m *Manifest) validate() error {
	if m.Kind > KindSavepoint {
		return fmt.Errorf("kind %d is unknown", m.Kind)
	}
	ids := map[string]bool{}
	for _, op := range m.Operators {
		if op.Parallelism < 1 || op.MaxParallelism < op.Parallelism || ids[op.ID] {
			return fmt.Errorf("%v has parallelism %d of at most %d, or is there twice", op, op.Parallelism, op.MaxParallelism)
		}
		ids[op.ID] = true
	}
	files := map[string]bool{}
	for _, s := range m.Segments {
		if s.File == "" || strings.ContainsAny(s.File, `/\`) || files[s.File] || s.Size < headerSize+frameSize+trailerSize {
			return fmt.Errorf("the segment %q with %d bytes is impossible, or there twice", s.File, s.Size)
		}
		files[s.File] = true
		for _, ref := range s.Shared {
			if ref.Name == "" || strings.ContainsAny(ref.Name, `/\`) {
				return fmt.Errorf("the name %q of a shared file is impossible", ref.Name)
			}
		}
		for _, id := range s.Operators {
			if !ids[id] {
				return fmt.Errorf("the segment %s has state of operator %s, which is not in the manifest", s.File, id)
			}
		}
	}
	return nil
}

// Manifest describes the checkpoint. It is not to be changed.
func (c *Checkpoint) Manifest() *Manifest { return c.manifest }

// Path returns where the checkpoint is.
func (c *Checkpoint) Path() string { return c.storage.path(c.dir) }

// Close closes the files. Readers are of no use then.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, s := range c.segments {
		errs = append(errs, s.close())
	}
	if c.release != nil {
		errs = append(errs, c.release())
		c.release = nil
	}
	return errors.Join(errs...)
}

// Operator returns the state of an operator; ok is false if the checkpoint has no such
// operator.
func (c *Checkpoint) Operator(id string) (state *OperatorState, ok bool) {
	i := slices.IndexFunc(c.manifest.Operators, func(op Operator) bool { return op.ID == id })
	if i < 0 {
		return nil, false
	}
	o := &OperatorState{Operator: c.manifest.Operators[i], checkpoint: c}
	for _, info := range c.manifest.Segments {
		if slices.Contains(info.Operators, id) {
			o.segments = append(o.segments, c.segments[info.File])
		}
	}
	return o, true
}

// OperatorState is the state of one operator in all its subtasks.
type OperatorState struct {
	Operator
	checkpoint *Checkpoint
	segments   []*openSegment
}

// Reader returns what one subtask is restored from if the operator has that parallelism
// now. ranges gives the key groups of a subtask, both ends included, with the max
// parallelism of the checkpoint.
func (o *OperatorState) Reader(subtask, parallelism int, ranges func(subtask, parallelism, maxParallelism int) (first, last int)) (*snapshot.Share, error) {
	written, err := o.written()
	if err != nil {
		return nil, err
	}
	first, last := ranges(subtask, parallelism, o.MaxParallelism)
	share, err := snapshot.Deal(o.checkpoint.manifest.ID, written, o.checkpoint.Shared, snapshot.Target{
		Subtask: subtask, Parallelism: parallelism, FirstGroup: first, LastGroup: last,
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %v: %w", o.checkpoint.Path(), o.Operator, err)
	}
	return share, nil
}

// written returns the parts by writing subtask.
func (o *OperatorState) written() ([]map[string]snapshot.Written, error) {
	written := make([]map[string]snapshot.Written, o.Parallelism)
	for _, s := range o.segments {
		index, err := s.load()
		if err != nil {
			return nil, err
		}
		for _, op := range index.Operators {
			if op.Operator.ID != o.ID {
				continue
			}
			at := op.Operator.Subtask
			if at < 0 || at >= o.Parallelism || written[at] != nil {
				return nil, s.damage(0, fmt.Errorf("it has subtask %d of %v, which has %d, or has it twice", at, o.Operator, o.Parallelism))
			}
			parts := map[string]snapshot.Written{}
			for _, p := range op.Parts {
				parts[p.Part.Name] = &storedPart{segment: s, operator: op.Operator, index: p}
			}
			written[at] = parts
		}
	}
	return written, nil
}

// PartInfo sums a part up over all subtasks.
type PartInfo struct {
	snapshot.Part
	Entries int64
	// Raw is the bytes of the entries, Stored the bytes of the blocks that have them.
	Raw, Stored int64
	// FirstGroup and LastGroup are the lowest and the highest key group with entries.
	FirstGroup, LastGroup int
}

// Parts returns the parts that the subtasks wrote, by name.
func (o *OperatorState) Parts() ([]PartInfo, error) {
	written, err := o.written()
	if err != nil {
		return nil, err
	}
	var parts []PartInfo
	at := map[string]int{}
	for _, byName := range written {
		for name, w := range byName {
			if _, ok := at[name]; !ok {
				at[name] = len(parts)
				parts = append(parts, PartInfo{Part: w.Part(), FirstGroup: o.MaxParallelism})
			}
			p := &parts[at[name]]
			index := w.(*storedPart).index
			p.Entries += index.Entries
			p.Raw += index.Raw
			for b := range index.blocks() {
				p.Stored += b.Length
				p.FirstGroup, p.LastGroup = min(p.FirstGroup, b.First), max(p.LastGroup, b.Last)
			}
		}
	}
	slices.SortFunc(parts, func(a, b PartInfo) int { return strings.Compare(a.Name, b.Name) })
	return parts, nil
}

func (c *Checkpoint) sharedName(ref SharedRef) string {
	if c.manifest.Kind == KindSavepoint {
		return c.dir + "/" + sharedDir + "/" + ref.Name
	}
	return sharedDir + "/" + ref.Name
}

// Shared opens a shared file. Reading ends with an error instead of io.EOF if the content
// is not what was stored. The checkpoint must refer to the file.
func (c *Checkpoint) Shared(name string) (io.ReadCloser, error) {
	refs := c.manifest.sharedRefs()
	i := slices.IndexFunc(refs, func(r SharedRef) bool { return r.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("checkpoint: %s does not refer to a shared file %q", c.Path(), name)
	}
	file := c.sharedName(refs[i])
	r, err := c.storage.open(file)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return newCheckedReader(r, refs[i], c.storage.path(file)), nil
}

// Verify reads all of the checkpoint and returns everything that is damaged.
func (c *Checkpoint) Verify() error {
	var damage []error
	damage = append(damage, atOnce(c.manifest.Segments, func(info SegmentInfo) error {
		return c.segments[info.File].verify()
	}))
	var shared []string
	for _, ref := range c.manifest.sharedRefs() {
		shared = append(shared, ref.Name)
	}
	slices.Sort(shared)
	damage = append(damage, atOnce(slices.Compact(shared), c.verifyShared))
	return errors.Join(damage...)
}

func (c *Checkpoint) verifyShared(name string) error {
	r, err := c.Shared(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
