package keyed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// StoreImage is the disk store of one subtask in a snapshot that is incremental: the files it
// is in. Those with entries are shared with other snapshots, the small ones are in a part of
// the operator, an ImagePart.
type StoreImage struct {
	// Store is what the names of shared files begin with.
	Store string
	// FirstGroup and LastGroup are the key groups that the subtask owned.
	FirstGroup, LastGroup int
	// Tables are shared, each as Store-Name.
	Tables []StoredTable
	Files  []StoredFile
}

// StoredTable is a file that other snapshots may have, too; StoredFile is one that none has.
type (
	StoredTable struct {
		Name string
		Size int64
	}
	StoredFile struct {
		Name    string
		Content []byte
	}
)

// ImagePart is the part of an operator with the images of disk stores, an entry for each
// subtask that has one. M is what an entry has: the image, and what one needs to find
// something in the store.
type ImagePart[M any] struct {
	image func(*M) *StoreImage
	// codec is made once: that takes a millisecond.
	codec func() (*codec.Codec[M], error)
}

// NewImagePart returns the part with entries of type M. image returns the image in one.
func NewImagePart[M any](image func(*M) *StoreImage) *ImagePart[M] {
	return &ImagePart[M]{image, sync.OnceValues(codec.For[M])}
}

const (
	imagePartName    = "spilled"
	imagePartVersion = 1
)

// Write adds the store as it is now, of a subtask with these key groups, to a snapshot that is
// incremental, with m, of which it fills in the image. With prefixes, only files that have keys with one of them
// are stored. The store's writes are held back until what is added here
// has been written, so it comes before what takes long.
func (p *ImagePart[M]) Write(w snapshot.Writer, store *spill.Store, groups GroupRange, m *M, prefixes ...[]byte) error {
	record, err := p.codec()
	if err != nil {
		return err
	}
	part, err := w.Part(snapshot.Part{
		Name: imagePartName, Kind: snapshot.Union, Version: imagePartVersion, Schemas: map[string]string{"value": record.Schema()},
	})
	if err != nil {
		return err
	}
	image, err := store.Image(prefixes...)
	if err != nil {
		return err
	}
	dir := store.Dir()
	*p.image(m) = StoreImage{Store: store.ID(), FirstGroup: groups.First, LastGroup: groups.Last}
	w.Later(func(ctx context.Context) (err error) {
		defer func() {
			if err = errors.Join(err, image.Close()); err != nil {
				err = fmt.Errorf("state on disk, in %s: %w", dir, err)
			}
		}()
		if err := p.image(m).write(ctx, w, image); err != nil {
			return err
		}
		entry, err := record.Append(nil, m)
		if err != nil {
			return err
		}
		return errors.Join(part.Append(0, entry), part.Close())
	})
	return nil
}

// write stores the files of an image.
func (i *StoreImage) write(ctx context.Context, w snapshot.Writer, image *spill.Image) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := image.Take(ctx); err != nil {
		return err
	}
	files, err := image.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		open := func() (io.ReadCloser, error) { return f.OpenUntil(ctx) }
		if f.IsTable() {
			i.Tables = append(i.Tables, StoredTable{f.Name, f.Size})
			err = w.Share(i.shared(f.Name), f.Size, open)
		} else {
			var content []byte
			content, err = readAll(open)
			i.Files = append(i.Files, StoredFile{f.Name, content})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shared returns the name under which a table is shared.
func (i *StoreImage) shared(table string) string { return i.Store + "-" + table }

func readAll(open func() (io.ReadCloser, error)) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// Restore calls restore for one subtask after the other that had something of these key
// groups on disk. It fetches the files into a temporary directory, as options say, where they
// are a store to read while restore runs, and removes them. It ends soon after ctx.
func (p *ImagePart[M]) Restore(ctx context.Context, from snapshot.Reader, groups GroupRange, options spill.Options, restore func(*M, *spill.Restored) error) error {
	part, ok := from.Part(imagePartName)
	if !ok {
		return nil
	}
	if v := part.Part().Version; v != imagePartVersion {
		return fmt.Errorf("part %q has version %d, this program knows version %d: restore with the program that wrote it, or a later one",
			imagePartName, v, imagePartVersion)
	}
	record, err := p.codec()
	if err != nil {
		return err
	}
	decode, err := record.Decoder(part.Part().Schemas["value"])
	if err != nil {
		return fmt.Errorf("part %q: %w", imagePartName, err)
	}
	for e, err := range part.Entries() {
		if err != nil {
			return err
		}
		var m M
		if _, err := decode(e.Data, &m); err != nil {
			return fmt.Errorf("part %q: %w", imagePartName, err)
		}
		i := p.image(&m)
		if i.FirstGroup > groups.Last || i.LastGroup < groups.First {
			continue
		}
		if err := i.open(ctx, from, options, func(store *spill.Restored) error { return restore(&m, store) }); err != nil {
			return fmt.Errorf("what was on disk of key groups %d to %d cannot be restored: %w", i.FirstGroup, i.LastGroup, err)
		}
	}
	return nil
}

// open calls use with the store while it is open.
func (i *StoreImage) open(ctx context.Context, from snapshot.Reader, options spill.Options, use func(*spill.Restored) error) (err error) {
	store, err := spill.OpenImage(ctx, options, i.files(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return use(store)
}

// files returns the files of the store.
func (i *StoreImage) files(from snapshot.Reader) []spill.File {
	var files []spill.File
	for _, t := range i.Tables {
		files = append(files, spill.File{Name: t.Name, Size: t.Size, Open: func() (io.ReadCloser, error) {
			return from.Shared(i.shared(t.Name))
		}})
	}
	for _, f := range i.Files {
		files = append(files, spill.File{Name: f.Name, Size: int64(len(f.Content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(f.Content)), nil
		}})
	}
	return files
}
