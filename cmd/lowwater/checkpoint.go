package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/snapshot"
)

type checkpointCommand struct {
	Inspect inspectCommand `cmd:"" help:"Show what is in a checkpoint or savepoint."`
	List    listCommand    `cmd:"" help:"List the checkpoints and savepoints in a directory, the newest first."`
}

type inspectCommand struct {
	Path    string `arg:"" placeholder:"PATH" help:"The checkpoint, as a path or URL."`
	Verify  bool   `help:"Read all of it and check every byte."`
	Entries int    `placeholder:"N" default:"20" help:"Show up to N entries of parts that are text, such as positions in topics (${default})."`
}

// Help is what `lowwater checkpoint inspect --help` adds.
func (*inspectCommand) Help() string {
	return `Shows the operators with their parts: entries, key groups, sizes before compression,
the Avro schemas of keys and values, and where sources stood. State on disk is in shared
files, which several checkpoints refer to: how many, how large, and how much of them is new.

    lowwater checkpoint inspect /var/lib/orders/chk-42
    lowwater checkpoint inspect --verify /var/lib/orders/chk-42

Exit codes: 0 whole, 1 damaged or not readable, 2 used wrongly.`
}

func (c *inspectCommand) Run(stdout io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cp, err := checkpoint.Load(ctx, c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	var out strings.Builder
	showCheckpoint(&out, cp)
	for _, op := range cp.Manifest().Operators {
		if err := showOperator(&out, cp, op, c.Entries); err != nil {
			return err
		}
	}
	if c.Verify {
		if err := cp.Verify(); err != nil {
			return err
		}
		out.WriteString("\nverified: every byte is as it was written\n")
	}
	return writePlain(stdout, out.String())
}

func showCheckpoint(out io.Writer, cp *checkpoint.Checkpoint) {
	m := cp.Manifest()
	fmt.Fprintf(out, "%v %d of job %q, written by lowwater %s\n", m.Kind, m.ID, m.Job, m.Version)
	fmt.Fprintln(out, cp.Path())
	fmt.Fprintf(out, "completed %s, %v after it was triggered\n", m.Completed.UTC().Format(time.RFC3339), m.Completed.Sub(m.Triggered).Round(time.Millisecond))
	stored, shared, sharedSize, sharedNew := int64(0), map[string]bool{}, int64(0), int64(0)
	for _, s := range m.Segments {
		stored += s.Size
		sharedNew += s.NewShared
		for _, ref := range s.Shared {
			if !shared[ref.Name] {
				shared[ref.Name] = true
				sharedSize += ref.Size
			}
		}
	}
	fmt.Fprintf(out, "%d segments with %d bytes", len(m.Segments), stored)
	if len(shared) > 0 {
		fmt.Fprintf(out, ", %d shared files with %d bytes, of which %d are new in this checkpoint", len(shared), sharedSize, sharedNew)
	}
	fmt.Fprintln(out)
}

func showOperator(out io.Writer, cp *checkpoint.Checkpoint, op checkpoint.Operator, most int) error {
	fmt.Fprintf(out, "\n%v: parallelism %d of at most %d", op, op.Parallelism, op.MaxParallelism)
	if len(op.Finished) > 0 {
		fmt.Fprintf(out, ", finished subtasks %v", op.Finished)
	}
	fmt.Fprintln(out)
	if op.Enumerator != nil {
		fmt.Fprintf(out, "  enumerator, %d bytes: %s\n", len(op.Enumerator), asText(op.Enumerator))
	}
	state, _ := cp.Operator(op.ID)
	parts, err := state.Parts()
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		fmt.Fprintln(out, "  no state")
		return nil
	}
	if err := showParts(out, parts); err != nil {
		return err
	}
	all, err := state.Reader(0, 1, func(_, _, maxParallelism int) (first, last int) { return 0, maxParallelism - 1 })
	if err != nil {
		return err
	}
	for _, part := range parts {
		for _, role := range slices.Sorted(maps.Keys(part.Schemas)) {
			fmt.Fprintf(out, "  %s, %s: %s\n", part.Name, role, part.Schemas[role])
		}
		if _, text := part.Schemas["text"]; text {
			if err := showEntries(out, all, part.Name, most); err != nil {
				return err
			}
		}
	}
	return nil
}

func showParts(out io.Writer, parts []checkpoint.PartInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  part\tkind\tlayout\tentries\tkey groups\tbytes\tcompressed")
	for _, p := range parts {
		groups := "-"
		if p.Kind == snapshot.Keyed && p.Entries > 0 {
			groups = fmt.Sprintf("%d to %d", p.FirstGroup, p.LastGroup)
		}
		fmt.Fprintf(w, "  %s\t%v\t%d\t%d\t%s\t%d\t%d\n", p.Name, p.Kind, p.Version, p.Entries, groups, p.Raw, p.Stored)
	}
	return w.Flush()
}

// showEntries shows the entries of a part that says that they are text.
func showEntries(out io.Writer, state snapshot.Reader, name string, most int) error {
	part, ok := state.Part(name)
	if !ok {
		return nil
	}
	shown := 0
	for e, err := range part.Entries() {
		if err != nil {
			return err
		}
		if shown == most {
			fmt.Fprintln(out, "    ... (--entries shows more)")
			return nil
		}
		fmt.Fprintln(out, "    "+asText(e.Data))
		shown++
	}
	return nil
}

// asText returns data as it is if a terminal can show it, otherwise quoted.
func asText(data []byte) string {
	s := string(data)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

type listCommand struct {
	Dir string `arg:"" placeholder:"DIR" help:"The directory, as a path or URL."`
}

// Help is what `lowwater checkpoint list --help` adds.
func (*listCommand) Help() string {
	return `Looks at manifests, and whether all files are there with their size and right ends;
lowwater checkpoint inspect --verify reads everything.

Exit codes: 0 all whole or never completed, 1 some damaged or not readable, 2 used wrongly.`
}

func (c *listCommand) Run(stdout io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := checkpoint.View(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	infos, err := store.List()
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return writePlain(stdout, fmt.Sprintf("no checkpoints in %s\n", store.Path()))
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "id\tkind\tcompleted\tjob\tbytes\tstate\tpath")
	damaged := 0
	for _, info := range infos {
		fmt.Fprintln(w, listLine(info))
		if info.Err != nil && !errors.Is(info.Err, checkpoint.ErrUnfinished) {
			damaged++
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	if err := writePlain(stdout, out.String()); err != nil || damaged == 0 {
		return err
	}
	errs := []error{fmt.Errorf("%d of %d are damaged", damaged, len(infos))}
	for _, info := range infos {
		if !errors.Is(info.Err, checkpoint.ErrUnfinished) {
			errs = append(errs, info.Err)
		}
	}
	return errors.Join(errs...)
}

func listLine(info checkpoint.Info) string {
	state := "whole"
	switch {
	case errors.Is(info.Err, checkpoint.ErrUnfinished):
		state = "not completed"
	case info.Err != nil:
		state = "damaged"
	}
	completed, job, size := "-", "-", "-"
	if m := info.Manifest; m != nil {
		completed, job = m.Completed.UTC().Format(time.RFC3339), m.Job
		stored := int64(0)
		for _, s := range m.Segments {
			stored += s.StateSize()
		}
		size = fmt.Sprint(stored)
	}
	return fmt.Sprintf("%d\t%v\t%s\t%s\t%s\t%s\t%s", info.ID, info.Kind, completed, job, size, state, info.Path)
}
