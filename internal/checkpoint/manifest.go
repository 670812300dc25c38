package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/lowwater/lowwater/internal/codec"
)

// Kind tells checkpoints, which lowwater takes and removes, from savepoints, which
// belong to the user.
type Kind uint8

const (
	KindCheckpoint Kind = iota
	KindSavepoint
)

func (k Kind) String() string {
	if k == KindSavepoint {
		return "savepoint"
	}
	return "checkpoint"
}

// Manifest describes a checkpoint.
type Manifest struct {
	Job  string
	ID   int64
	Kind Kind
	// Triggered and Completed are wall-clock times.
	Triggered, Completed time.Time
	// Previous is the newest checkpoint that had completed when this one was triggered, 0
	// if there was none.
	Previous int64
	// Version is that of the lowwater that wrote it.
	Version string
	// Run names the run that wrote it, and is filled in by Pending.Complete. It is empty in a
	// directory with a lock, and in checkpoints of versions that did not write it.
	Run       string
	Operators []Operator
	// Segments is filled in by Pending.Complete.
	Segments []SegmentInfo
}

// Operator describes an operator of the job as it was at the checkpoint.
type Operator struct {
	ID, UID, Name  string
	Parallelism    int
	MaxParallelism int
	// Finished has the subtasks that had finished before the checkpoint.
	Finished []int
	// Enumerator is the state of a source's enumerator; nil if it has none.
	Enumerator []byte
	// Size is filled in by Pending.Complete: bytes of parts before compression, and of shared
	// files as they are, without Enumerator.
	Size int64
}

// SegmentInfo describes a finished segment file.
type SegmentInfo struct {
	// File is the name within the checkpoint.
	File    string
	Vertex  string
	Subtask int
	Size    int64
	// Index is the checksum of the index, which has those of the blocks.
	Index uint64
	// Operators has the IDs of the operators that wrote parts.
	Operators []string
	Shared    []SharedRef
	// NewShared is how many bytes of shared files were stored for this checkpoint; earlier
	// ones had stored the others.
	NewShared int64
}

// StateSize returns the size of the subtask's state, however much of it earlier checkpoints
// had stored; WrittenSize returns how much was stored for this one.
func (s *SegmentInfo) StateSize() int64 {
	size := s.Size
	for _, ref := range s.Shared {
		size += ref.Size
	}
	return size
}

// WrittenSize: see StateSize.
func (s *SegmentInfo) WrittenSize() int64 { return s.Size + s.NewShared }

// SharedRef names a shared file and says what is in it.
type SharedRef struct {
	Name     string
	Size     int64
	Checksum uint64 // xxh3 of the content
}

// OperatorInfo places an operator in one subtask within the job.
type OperatorInfo struct {
	// ID identifies the operator over versions of the job.
	ID, UID, Name                        string
	Subtask, Parallelism, MaxParallelism int
}

// described is what errors call an operator.
func described(name, uid, id string) string {
	if uid != "" {
		return fmt.Sprintf("operator %q (uid %s)", name, uid)
	}
	return fmt.Sprintf("operator %q (id %s)", name, id)
}

func (o Operator) String() string     { return described(o.Name, o.UID, o.ID) }
func (o OperatorInfo) String() string { return described(o.Name, o.UID, o.ID) }

const (
	manifestName  = "manifest"
	manifestMagic = "LWMANIF\n"
	// formatVersion is that of the manifest and of segments.
	formatVersion = 1
	// maxManifest bounds what is read before anything is known about it.
	maxManifest = 512 << 20
)

func encodeManifest(m *Manifest) ([]byte, error) {
	c, err := codec.For[Manifest]()
	if err != nil {
		return nil, err
	}
	schema := c.Schema()
	out := append([]byte(manifestMagic), make([]byte, 12)...)
	out = append(out, schema...)
	if out, err = c.Append(out, m); err != nil {
		return nil, err
	}
	if len(out) > maxManifest-8 {
		return nil, fmt.Errorf("the manifest would have %d bytes: the states of sources' enumerators are too large", len(out))
	}
	binary.LittleEndian.PutUint32(out[8:], formatVersion)
	binary.LittleEndian.PutUint32(out[12:], uint32(len(schema)))
	binary.LittleEndian.PutUint32(out[16:], uint32(len(out)-20-len(schema)))
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out)), nil
}

// errNotManifest is for files that were never a manifest, as opposed to damaged ones.
var errNotManifest = errors.New("it is not a lowwater manifest")

func decodeManifest(data []byte) (*Manifest, error) {
	if len(data) < 28 {
		return nil, fmt.Errorf("the manifest has only %d bytes: it is damaged", len(data))
	}
	if string(data[:8]) != manifestMagic {
		return nil, errNotManifest
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != formatVersion {
		return nil, versionError(v)
	}
	body, sum := data[:len(data)-8], binary.LittleEndian.Uint64(data[len(data)-8:])
	if xxh3.Hash(body) != sum {
		return nil, errors.New("the checksum of the manifest is wrong: it is damaged")
	}
	schema, rest := uint64(binary.LittleEndian.Uint32(body[12:])), uint64(binary.LittleEndian.Uint32(body[16:]))
	if 20+schema+rest != uint64(len(body)) {
		return nil, errors.New("the lengths in the manifest do not add up")
	}
	var m Manifest
	if err := decodeRecord(string(body[20:20+schema]), body[20+schema:], &m); err != nil {
		return nil, err
	}
	return &m, nil
}

func versionError(v uint32) error {
	return fmt.Errorf("its format has version %d, this lowwater knows version %d: read it with the version that wrote it, or a newer one", v, formatVersion)
}

// decodeRecord decodes all of data, written under schema, into v.
func decodeRecord[T any](schema string, data []byte, v *T) error {
	c, err := codec.For[T]()
	if err != nil {
		return err
	}
	decode, err := c.Decoder(schema)
	if err != nil {
		return err
	}
	rest, err := decode(data, v)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes are left behind the record", len(rest))
	}
	return nil
}
