package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// network is what runs reach a storage over. It counts what they ask for and what they are
// told, delivers something that was sent off before at one of these moments, and cuts a run
// off at another.
type network struct {
	storage
	moments *int
	// at is the moment when deliver is called.
	at      int
	deliver func()
	// left is how many moments the run has, negative for no end.
	left int
}

var errCutOff = fmt.Errorf("%w: cut off", errUnreachable)

func (n *network) moment() error {
	if *n.moments++; *n.moments == n.at {
		n.deliver()
	}
	if n.left == 0 {
		return errCutOff
	}
	n.left--
	return nil
}

// ask has f done, unless the run is cut off before. It may be told nothing of it.
func (n *network) ask(f func() error) error {
	if err := n.moment(); err != nil {
		return err
	}
	return errors.Join(f(), n.moment())
}

func (n *network) list(dir string) (files []fileInfo, err error) {
	err = n.ask(func() error { files, err = n.storage.list(dir); return err })
	return files, err
}

func (n *network) open(name string) (r fileReader, err error) {
	err = n.ask(func() error { r, err = n.storage.open(name); return err })
	return r, err
}

func (n *network) publish(name string, data []byte) error {
	return n.ask(func() error { return n.storage.publish(name, data) })
}

func (n *network) remove(names ...string) error {
	return n.ask(func() error { return n.storage.remove(names...) })
}

func (n *network) create(name string) (fileWriter, error) {
	w, err := n.storage.create(name)
	return networkWriter{w, n}, err
}

type networkWriter struct {
	fileWriter
	n *network
}

func (w networkWriter) commit() error { return w.n.ask(w.fileWriter.commit) }

func (n *network) lock() (owner, error) { return takeOver(n) }

// sendingOff is a storage that is asked for a file and does not say that it is there before
// during has returned; during has it appear.
type sendingOff struct {
	storage
	suffix string
	during func(appear func() error)
}

func (s *sendingOff) send(name string, f func() error) (err error) {
	if s.suffix == "" || !strings.HasSuffix(name, s.suffix) {
		return f()
	}
	s.suffix = ""
	sent := false
	appear := func() error {
		if !sent {
			sent, err = true, f()
		}
		return err
	}
	s.during(appear)
	return appear()
}

func (s *sendingOff) publish(name string, data []byte) error {
	return s.send(name, func() error { return s.storage.publish(name, data) })
}

func (s *sendingOff) create(name string) (fileWriter, error) {
	w, err := s.storage.create(name)
	return sendingWriter{w, s, name}, err
}

type sendingWriter struct {
	fileWriter
	s    *sendingOff
	name string
}

func (w sendingWriter) commit() error { return w.s.send(w.name, w.fileWriter.commit) }

func (s *sendingOff) lock() (owner, error) { return takeOver(s) }

// goesOn opens a directory as a run that resumes from the latest does, and returns where it
// begins: with a checkpoint, or with what an earlier run was told.
func goesOn(t *testing.T, over storage) (s *Store, from string, err error) {
	if s, err = openStore(t.Context(), over); err != nil {
		return nil, "", err
	}
	start, err := s.Start()
	if err == nil {
		err = s.CheckOwner()
	}
	if err != nil {
		return nil, "", err
	}
	c, skipped, err := s.Latest(start.After)
	for _, info := range skipped {
		if !errors.Is(info.Err, ErrUnfinished) && !errors.Is(info.Err, ErrLate) && !strings.Contains(info.Err.Error(), "is missing") {
			t.Error(info.Err)
		}
	}
	if err != nil {
		return nil, "", err
	}
	if c == nil {
		return s, fmt.Sprintf("%+v", start), nil
	}
	return s, c.Path(), c.Close()
}

// succession is what became of runs that came one after the other.
type succession struct {
	moments int
	// cutOff says that the second run was.
	cutOff bool
	// second and third are where these went on from; that of the second is empty if it was cut
	// off before.
	second, third string
}

// succeed has a second run come, which is cut off after some moments, and a third, which comes
// again when the checkpoint of the second is damaged. Meanwhile, at a moment, something appears.
func succeed(t *testing.T, backing storage, cut, at int, appear func()) (r succession) {
	over := func(left int) *network { return &network{backing, &r.moments, at, appear, left} }
	s, from, err := goesOn(t, over(cut))
	own, completed := "", false
	if err == nil {
		r.second = from
		var id int64
		if id, err = s.NextID(); err == nil {
			own = s.storage.path(fmt.Sprint("chk-", id))
			if err = takeMany(s, id, 1); err == nil {
				completed = true
				err = s.Retain(3)
			}
		}
	}
	if r.cutOff = errors.Is(err, errCutOff); err != nil && !r.cutOff {
		t.Errorf("second: %v", err)
	}
	if _, r.third, err = goesOn(t, over(-1)); err != nil {
		t.Errorf("third: %v", err)
	}
	if completed && r.third != own {
		t.Errorf("the third run went on from %s, not from %s", r.third, own)
	}
	if r.third != own {
		return r
	}
	for _, f := range listed(t, backing, own[strings.LastIndex(own, "/")+1:]) {
		if file, _, _ := strings.Cut(f, " "); strings.HasSuffix(file, segmentSuffix) {
			err = errors.Join(err, backing.remove(file))
		}
	}
	if err != nil {
		t.Error(err)
	}
	if _, r.third, err = goesOn(t, over(-1)); err != nil {
		t.Errorf("third, again: %v", err)
	}
	return r
}

// check wants the runs to agree on what came before them.
func (r *succession) check(t *testing.T, what string) {
	t.Helper()
	if r.second != "" && r.third != r.second {
		t.Errorf("%s: the second run went on from %s, and the third, although that of the second is gone or damaged, from %s", what, r.second, r.third)
	}
}

// TestLateManifest: a run is taken over between its last look and the publication of a
// checkpoint. At whatever moment that appears, and whatever becomes of the run that has
// taken over, later runs go on from it only if that one did.
func TestLateManifest(t *testing.T) {
	late := 0
	orders(t, func(t *testing.T, backing storage, cut, at int, what string) (r succession) {
		first := openOn(t, &sendingOff{backing, "chk-2/" + manifestName, func(appear func() error) {
			r = succeed(t, backing, cut, at, func() { _ = appear() })
			r.check(t, what)
			// Now it is there, if it was not before.
			if err := appear(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			last, from, err := goesOn(t, backing)
			if err != nil || from != r.third {
				t.Errorf("%s: the third run went on from %s, the fourth from %s, %v", what, r.third, from, err)
				return
			}
			late += lateIs(t, last, what, from)
		}})
		if err := takeMany(first, 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := takeMany(first, 2, 1); !errors.Is(err, ErrTakenOver) {
			t.Errorf("%s: the first run completes a checkpoint: %v", what, err)
		}
		return r
	})
	if late < 20 {
		t.Errorf("only %d manifests were late", late)
	}
}

// lateIs returns 1 if checkpoint 2 is there and late. It wants that to be gone when the run has
// a checkpoint of its own.
func lateIs(t *testing.T, s *Store, what, from string) int {
	infos, err := s.List()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	n := 0
	for _, info := range infos {
		if errors.Is(info.Err, ErrLate) {
			n++
			if info.ID != 2 || info.Path == from || !strings.Contains(info.Err.Error(), info.Path) {
				t.Errorf("%s: late is %v: %v", what, info.Path, info.Err)
			}
		}
	}
	id, err := s.NextID()
	if err = errors.Join(err, takeMany(s, id, 1), s.Retain(1)); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if infos, err = s.List(); err != nil || len(infos) != 1 || infos[0].ID != id {
		t.Errorf("%s: left are %v, %v", what, infos, err)
	}
	return n
}

// TestLateStart: as TestLateManifest, for a run that was to start anew.
func TestLateStart(t *testing.T) {
	orders(t, func(t *testing.T, backing storage, cut, at int, what string) (r succession) {
		before := openOn(t, backing)
		if err := takeMany(before, 1, 1); err != nil {
			t.Fatal(err)
		}
		sending := &sendingOff{storage: backing}
		first := openOn(t, sending)
		sending.during = func(appear func() error) {
			r = succeed(t, backing, cut, at, func() { _ = appear() })
			r.check(t, what)
			if err := appear(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if _, from, err := goesOn(t, backing); err != nil || from != r.third {
				t.Errorf("%s: the third run went on from %s, the fourth from %s, %v", what, r.third, from, err)
			}
		}
		sending.suffix = startFile(first.owner.number())
		if err := first.SetStart(Start{After: 1}); !errors.Is(err, ErrTakenOver) {
			t.Errorf("%s: the first run begins: %v", what, err)
		}
		return r
	})
}

// oneIn is how many of the orders are left out for each that is tried: all of them take minutes.
const oneIn = 23

// orders calls f with a fresh storage for every moment at which a run may be cut off, with some
// of the moments at which something may appear, other ones each time.
func orders(t *testing.T, f func(t *testing.T, backing storage, cut, at int, what string) succession) {
	tried := 0
	for cut, cutOff := 0, true; cutOff; cut++ {
		for at, moments := 1+rand.IntN(oneIn), oneIn; at <= moments; at += oneIn {
			r := f(t, openMem(fmt.Sprint(t.Name(), rand.Uint64()), ""), cut, at, fmt.Sprintf("cut off after %d moments, appearing at %d", cut, at))
			if t.Failed() {
				return
			}
			moments, cutOff = r.moments, r.cutOff
			tried++
		}
	}
	t.Log(tried, "orders")
}

// copyFiles copies the files of one storage in memory to which name gives a name into another.
func copyFiles(t *testing.T, from, to *mem, name func(string) string) {
	t.Helper()
	for file, data := range from.files {
		if as := name(file); as != "" {
			to.files[as] = data
		}
	}
}

// TestWhatCounts: what a run finds counts, whatever wrote it, and what is brought in later does
// not, unless it is named.
func TestWhatCounts(t *testing.T) {
	fresh := func() *mem { return openMem(fmt.Sprint(t.Name(), rand.Uint64()), "").(*mem) }
	// It is as if runs of a version without records had written it.
	before := fresh()
	s := openOn(t, before)
	if err := errors.Join(takeMany(s, 3, 1), s.SetStart(Start{After: 2})); err != nil {
		t.Fatal(err)
	}
	writer, early := s.owner.run(), fresh()
	copyFiles(t, before, early, func(file string) string {
		if claimNumber(file) > 0 {
			return ""
		}
		return file
	})
	early.files[startName] = []byte(`{"after":2}` + "\n")

	s = openOn(t, early)
	if start, err := s.Start(); err != nil || start != (Start{After: 2}) {
		t.Errorf("it starts at %+v, %v", start, err)
	}
	if got, want := string(early.files["owner/1.start"]), string(summed(fmt.Appendf(nil, `{"after":2,"run":%q,"found":{"chk-3":%q}}`, s.owner.run(), writer))); got != want {
		t.Errorf("the record is %q, want %q", got, want)
	}
	if _, ok := early.files[startName]; ok {
		t.Error("there are two records")
	}
	if _, err := take(s, 4, KindSavepoint, ""); err != nil {
		t.Fatal(err)
	}

	other := fresh()
	s = openOn(t, other)
	savepoint, err := take(s, 6, KindSavepoint, "")
	if err = errors.Join(err, takeMany(s, 5, 1)); err != nil {
		t.Fatal(err)
	}
	savepoint = strings.TrimPrefix(savepoint, other.path(""))
	copyFiles(t, other, early, func(file string) string {
		if strings.HasPrefix(file, savepoint+"/") || strings.HasPrefix(file, "chk-5/") {
			return file
		}
		return ""
	})
	view := newStore(t.Context(), early)
	c, skipped, err := view.Latest(0)
	checkWhole(t, 4, KindSavepoint)(c, err)
	if len(skipped) != 2 || skipped[0].Path != early.path(savepoint) || skipped[1].Path != early.path("chk-5") {
		t.Errorf("skipped %+v", skipped)
	}
	for _, info := range skipped {
		if !errors.Is(info.Err, ErrLate) {
			t.Errorf("%s: %v", info.Path, info.Err)
		}
	}
	for _, name := range []string{"chk-5", savepoint} {
		if c, err = view.Load(name); err != nil {
			t.Error(err)
		} else if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Error(err)
		}
	}

	s = openOn(t, early)
	if _, err := take(s, 5, KindCheckpoint, ""); err != nil {
		t.Errorf("a late checkpoint is in the way: %v", err)
	}
	copyFiles(t, other, early, func(file string) string {
		return strings.Replace(file, "chk-5/", "chk-6/", 1)
	})
	if err := s.Retain(5); err != nil {
		t.Fatal(err)
	}
	if left := listed(t, early, "chk-6"); len(left) > 0 {
		t.Errorf("a late checkpoint stays: %v", left)
	}
	if left := listed(t, early, savepoint); len(left) == 0 {
		t.Error("a late savepoint is gone")
	}
	c, _, err = s.Latest(0)
	checkWhole(t, 5, KindCheckpoint)(c, err)
}
