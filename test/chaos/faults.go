package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
)

// fault is one way to disturb the job.
type fault struct {
	name string
	do   func(ctx context.Context, w *world, r *rand.Rand) error
}

func faultKinds() []fault {
	return []fault{
		{"kill", kill},
		{"terminate", terminate},
		{"freeze", freeze},
		{"kill-broker", killBroker},
		{"full-disk", fullDisk},
		{"corrupt", corrupt},
		{"cut", cut},
	}
}

func some(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// kill ends the job at any point. It starts again with another parallelism.
func kill(ctx context.Context, w *world, r *rand.Rand) error {
	if err := w.job.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if err := pause(ctx, some(r, 2*time.Second)); err != nil {
		return err
	}
	return w.job.start(1 + r.IntN(4))
}

// terminate stops the job gracefully: with a last checkpoint.
func terminate(ctx context.Context, w *world, r *rand.Rand) error {
	if err := w.job.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return w.job.start(1 + r.IntN(4))
}

// freeze stops the process for a while, as a long pause of its machine does.
func freeze(ctx context.Context, w *world, r *rand.Rand) error {
	if err := w.job.send(syscall.SIGSTOP); err != nil {
		return err
	}
	err := pause(ctx, time.Second+some(r, 9*time.Second))
	return errors.Join(err, w.job.send(syscall.SIGCONT))
}

// killBroker kills the broker, and at times the job at the same moment.
func killBroker(ctx context.Context, w *world, r *rand.Rand) error {
	if err := w.kafka("kill"); err != nil {
		return err
	}
	both := r.IntN(3) == 0
	if both {
		if err := w.job.signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	if err := pause(ctx, some(r, 3*time.Second)); err != nil {
		return err
	}
	if err := w.kafka("start"); err != nil {
		return err
	}
	if both {
		return w.job.start(1 + r.IntN(4))
	}
	return nil
}

// fullDisk fills the disk of the checkpoints to the last byte.
func fullDisk(ctx context.Context, w *world, r *rand.Rand) error {
	name := filepath.Join(w.checkpoints, "filler")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	chunk := make([]byte, 64<<10)
	for size := len(chunk); size > 0; {
		if _, err = f.Write(chunk[:size]); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk did not fill up: %w", err)
	}
	waited := pause(ctx, time.Second+some(r, 5*time.Second))
	return errors.Join(waited, f.Close(), os.Remove(name))
}

// corrupt changes a byte of the newest checkpoint while the job is down: in one of its own
// files, or in one that checkpoints share.
func corrupt(ctx context.Context, w *world, r *rand.Rand) error {
	if err := w.job.signal(syscall.SIGKILL); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(w.checkpoints, fmt.Sprintf("chk-%d", w.newest()), "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("checkpoint %d has no files: %w", w.newest(), err)
	}
	shared, err := w.sharedByNewest(ctx)
	if err != nil {
		return err
	}
	if len(shared) > 0 && r.IntN(2) == 0 {
		files = shared
	}
	name := files[r.IntN(len(files))]
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	at := r.IntN(len(data))
	data[at] ^= byte(1 + r.IntN(255))
	slog.Info("chaos: damaging", "file", name, "byte", at)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return w.job.start(1 + r.IntN(4))
}

// sharedByNewest returns the shared files that only the newest checkpoint refers to. Those that
// older ones refer to as well are left alone: damage there is damage to all of them, and the
// one before the newest must be whole to go on from.
func (w *world) sharedByNewest(ctx context.Context) (files []string, err error) {
	store, err := checkpoint.View(ctx, w.checkpoints)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	newest := w.newest()
	var own []string
	older := map[string]bool{}
	for _, info := range infos {
		if info.Manifest == nil {
			continue // nothing is restored from it
		}
		for _, segment := range info.Manifest.Segments {
			for _, ref := range segment.Shared {
				if info.ID == int64(newest) {
					own = append(own, ref.Name)
				} else {
					older[ref.Name] = true
				}
			}
		}
	}
	for _, name := range own {
		if !older[name] {
			files = append(files, filepath.Join(w.checkpoints, "shared", name))
		}
	}
	return files, nil
}

// cut takes the network between the job and the broker away: connections break, or
// they stay and nothing comes through.
func cut(ctx context.Context, w *world, r *rand.Rand) error {
	w.proxy.cut(r.IntN(2) == 0)
	err := pause(ctx, time.Second+some(r, 7*time.Second))
	w.proxy.restore()
	return err
}
