package checkpoint

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrTakenOver is the error of a store that belongs to another run by now. Nothing that it
// writes counts any more, and it removes nothing.
var ErrTakenOver = errors.New("another run has taken over the checkpoint directory")

// owner is a run's hold on a storage.
type owner interface {
	// check fails with ErrTakenOver if the storage is another run's by now.
	check() error
	// suffix makes the names of the run's segments differ from those of all other runs. It
	// is empty where no other run can write meanwhile.
	suffix() string
	release() error
}

const ownerDir = "owner"

// claim is the hold on a storage that cannot be locked. The claims on it have numbers, and
// it belongs to the run with the highest: who comes takes it, at once, whether the run
// before is dead or not. That one finds out when it looks.
//
// This is why nothing goes wrong in between. Published is what was there before a check
// that passed. A run lists checkpoints after it has made its claim, so it sees all that
// the run before has published, and has numbers above all of which that run had written
// anything before its last check that passed. Files are removed only if they were listed
// before a check that passed: none of them is a later run's.
type claim struct {
	storage storage
	number  int64
}

// claimAttempts is how often a run that comes tries again if others come at the same time.
const claimAttempts = 10

func takeOver(s storage) (owner, error) {
	for range claimAttempts {
		newest, err := newestClaim(s)
		if err != nil {
			return nil, err
		}
		c := &claim{storage: s, number: newest + 1}
		err = s.publish(c.file(), describeRun())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		published := err == nil
		if published {
			if err = c.probe(); err == nil {
				c.removeOlder()
				return c, nil
			}
		}
		// Others that come at the same time, and remove older claims, look like a store that
		// does not do what it should.
		now, listErr := newestClaim(s)
		if listErr != nil || now < c.number || published && now == c.number {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %d other runs came at the same time: give each job a directory of its own", s.path(""), claimAttempts)
}

func (c *claim) file() string { return ownerDir + "/" + strconv.FormatInt(c.number, 10) }

// describeRun says who makes a claim. No two claims are the same.
func describeRun() []byte {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails
	return fmt.Appendf(nil, "process %d on %s, since %s, run %s\n",
		os.Getpid(), host, time.Now().UTC().Format(time.RFC3339), hex.EncodeToString(unique[:]))
}

// newestClaim returns the highest number, 0 if nobody has been here.
func newestClaim(s storage) (newest int64, err error) {
	files, err := s.list(ownerDir)
	for _, f := range files {
		newest = max(newest, claimNumber(f.name))
	}
	return newest, err
}

// claimNumber returns 0 for a file that is no claim.
func claimNumber(file string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(file, ownerDir+"/"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// probe finds out whether the storage refuses to replace a file, on which all depends.
func (c *claim) probe() error {
	err := c.storage.publish(c.file(), []byte("probe\n"))
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s: the object store ignores conditional writes (If-None-Match), so two runs could replace each other's checkpoints: use one that knows them",
		c.storage.path(""))
}

// removeOlder tidies up. What it leaves does no harm, and the next run tries again.
func (c *claim) removeOlder() {
	files, err := c.storage.list(ownerDir)
	if err != nil {
		return
	}
	var older []string
	for _, f := range files {
		if n := claimNumber(f.name); n > 0 && n < c.number {
			older = append(older, f.name)
		}
	}
	_ = c.storage.remove(older...)
}

func (c *claim) check() error {
	newest, err := newestClaim(c.storage)
	if err != nil {
		return fmt.Errorf("finding out whether another run has taken over: %w", err)
	}
	if newest == c.number {
		return nil
	}
	if newest < c.number {
		return fmt.Errorf("%w %s, or something has removed %s, which says that this one writes here: a run without it publishes nothing more",
			ErrTakenOver, c.storage.path(""), c.storage.path(c.file()))
	}
	return fmt.Errorf("%w %s: %s: give each job a directory of its own; a run that was taken over publishes nothing more",
		ErrTakenOver, c.storage.path(""), (&claim{c.storage, newest}).who())
}

// who returns what the run says of itself, for messages.
func (c *claim) who() string {
	text, err := readFile(c.storage, c.file(), 4096)
	if err != nil {
		return "claim " + strconv.FormatInt(c.number, 10)
	}
	return strings.TrimSpace(string(text))
}

func (c *claim) suffix() string { return "-run" + strconv.FormatInt(c.number, 10) }

// release leaves the claim: numbers must not come again.
func (c *claim) release() error { return nil }
