package snapshottest

import "context"

// background is a function of Later that runs in steps. At any time either it runs
// or the test does.
type background struct {
	// stopped gets a value when the function stands still: it looks at its context, or
	// it has ended with an error or nil.
	stopped chan stop
	// goOn lets it run on; what is sent is what its context's Err returns.
	goOn chan error
}

type stop struct {
	ended bool
	err   error
}

func start(f func(context.Context) error) *background {
	b := &background{stopped: make(chan stop), goOn: make(chan error)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		err := f(&stepContext{Context: ctx, b: b, cancel: cancel})
		b.stopped <- stop{true, err}
	}()
	return b
}

// wait returns when the function stands still.
func (b *background) wait() (ended bool, err error) {
	s := <-b.stopped
	return s.ended, s.err
}

// stepContext stands still in Err until the test lets it go on.
type stepContext struct {
	context.Context
	b      *background
	cancel context.CancelFunc
}

func (c *stepContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.b.stopped <- stop{}
	err := <-c.b.goOn
	if err != nil {
		c.cancel()
	}
	return err
}
