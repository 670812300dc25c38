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
	// number is that of the run, above those of all runs before, and run a name that no other
	// has anywhere. They are 0 and empty where no other run can write meanwhile.
	number() int64
	run() string
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
//
// What a run that has been taken over has sent off may still appear at any time. Therefore a
// run, before it does anything else, writes down which checkpoints it has found, and then
// checks. Of two runs, either the record of the first was there before the second made its
// claim, which goes by it; or the first finds out, and has done nothing. So all runs that do
// anything go by the record of the last one before them that did: what that one found, or
// wrote itself, counts, and it had to go on from the newest of it. Anything else is late; it
// is in no record, and no run has gone on from it or will.
type claim struct {
	storage storage
	n       int64
	unique  string
}

// claimAttempts is how often a run that comes tries again if others come at the same time.
const claimAttempts = 10

func takeOver(s storage) (owner, error) {
	for range claimAttempts {
		newest, err := newestClaim(s)
		if err != nil {
			return nil, err
		}
		c := newClaim(s, newest+1)
		err = s.publish(c.file(), c.describe())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		published := err == nil
		if published {
			if err = c.probe(); err == nil {
				return c, nil
			}
		}
		// Others that come at the same time, and remove older claims, look like a store that
		// does not do what it should.
		now, listErr := newestClaim(s)
		if listErr != nil || now < c.n || published && now == c.n {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %d other runs came at the same time: give each job a directory of its own", s.path(""), claimAttempts)
}

func (c *claim) file() string { return ownerDir + "/" + strconv.FormatInt(c.n, 10) }

func newClaim(s storage, n int64) *claim {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails
	return &claim{s, n, hex.EncodeToString(unique[:])}
}

// describe says who makes a claim. No two claims are the same.
func (c *claim) describe() []byte {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Appendf(nil, "process %d on %s, since %s, run %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339), c.run())
}

// newestClaim returns the highest number, 0 if nobody has been here.
func newestClaim(s storage) (newest int64, err error) {
	files, err := s.list(ownerDir)
	for _, f := range files {
		newest = max(newest, claimNumber(f.name))
	}
	return newest, err
}

// claimNumber returns the number of a claim or of a run's record, 0 for any other file.
func claimNumber(file string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(file, ownerDir+"/"), startSuffix), 10, 64)
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

func (c *claim) check() error {
	newest, err := newestClaim(c.storage)
	if err != nil {
		return fmt.Errorf("finding out whether another run has taken over: %w", err)
	}
	if newest == c.n {
		return nil
	}
	if newest < c.n {
		return fmt.Errorf("%w %s, or something has removed %s, which says that this one writes here: a run without it publishes nothing more",
			ErrTakenOver, c.storage.path(""), c.storage.path(c.file()))
	}
	return fmt.Errorf("%w %s: %s: give each job a directory of its own; a run that was taken over publishes nothing more",
		ErrTakenOver, c.storage.path(""), (&claim{storage: c.storage, n: newest}).who())
}

// who returns what the run says of itself, for messages.
func (c *claim) who() string {
	text, err := readFile(c.storage, c.file(), 4096)
	if err != nil {
		return "claim " + strconv.FormatInt(c.n, 10)
	}
	return strings.TrimSpace(string(text))
}

func (c *claim) number() int64 { return c.n }

func (c *claim) run() string { return strconv.FormatInt(c.n, 10) + "-" + c.unique }

// release leaves the claim: numbers must not come again.
func (c *claim) release() error { return nil }
