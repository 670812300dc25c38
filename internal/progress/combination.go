package progress

// combined is the event time of inputs that have to agree (spec watermarks 2):
// the minimum of the active ones, and the maximum of all once all are idle. It
// never falls.
type combined struct {
	inputs []inputState
	// free are the unused entries of inputs.
	free   []int
	count  int
	active int
	// minimum holds the watermarks of the active inputs.
	minimum minTree
	// largest of all inputs' watermarks; after the input that had it was
	// removed it is unknown until someone asks.
	largest        int64
	largestUnknown bool

	watermark int64
	idle      bool
}

type inputState struct {
	watermark int64
	idle      bool
	used      bool
}

func newCombined() combined {
	return combined{minimum: newMinTree(0), largest: minTime, watermark: minTime}
}

// add returns the index of a new input, which is active and at minTime.
func (c *combined) add() int {
	i := len(c.inputs)
	if n := len(c.free); n > 0 {
		i = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		c.inputs = append(c.inputs, inputState{})
		c.minimum.grow(len(c.inputs))
	}
	c.inputs[i] = inputState{watermark: minTime, used: true}
	c.minimum.set(i, minTime)
	c.count++
	c.active++
	return i
}

func (c *combined) remove(i int) {
	in := &c.inputs[i]
	if !in.idle {
		c.active--
	}
	if in.watermark == c.largest {
		c.largestUnknown = true
	}
	c.count--
	*in = inputState{}
	c.minimum.set(i, maxTime)
	c.free = append(c.free, i)
}

// raise makes input i active and raises its watermark to t. It reports whether
// the watermark rose.
func (c *combined) raise(i int, t int64) bool {
	c.setIdle(i, false)
	in := &c.inputs[i]
	if t <= in.watermark {
		return false
	}
	in.watermark = t
	c.largest = max(c.largest, t)
	c.minimum.set(i, t)
	return true
}

func (c *combined) setIdle(i int, idle bool) {
	in := &c.inputs[i]
	if in.idle == idle {
		return
	}
	in.idle = idle
	if idle {
		c.active--
		c.minimum.set(i, maxTime)
	} else {
		c.active++
		c.minimum.set(i, in.watermark)
	}
}

// update derives the common watermark and status. It reports whether the
// watermark rose. Without inputs nothing changes.
func (c *combined) update() (advanced bool) {
	if c.count == 0 {
		return false
	}
	c.idle = c.active == 0
	t := c.minimum.min()
	if c.idle {
		t = c.largestWatermark()
	}
	if t <= c.watermark {
		return false
	}
	c.watermark = t
	return true
}

func (c *combined) largestWatermark() int64 {
	if c.largestUnknown {
		c.largest = minTime
		for _, in := range c.inputs {
			if in.used {
				c.largest = max(c.largest, in.watermark)
			}
		}
		c.largestUnknown = false
	}
	return c.largest
}

// Combination turns the watermarks and statuses of the logical inputs of one
// operator, each behind its own valve, into those of the operator (spec
// watermarks 2). Operators with one input need none.
type Combination struct {
	out    Output
	state  combined
	inputs []combinationInput
}

// combinationInput is an Output for what one valve emits.
type combinationInput struct {
	combination *Combination
	index       int
}

// NewCombination returns a combination of inputs that are active and have no
// watermark.
func NewCombination(inputs int, out Output) *Combination {
	c := &Combination{out: out, state: newCombined(), inputs: make([]combinationInput, inputs)}
	for i := range c.inputs {
		c.inputs[i] = combinationInput{c, c.state.add()}
	}
	return c
}

// Restore makes t what the combination last emitted and inputs what its inputs last sent.
// It emits nothing, and is called before anything arrives.
func (c *Combination) Restore(t int64, inputs []int64) {
	for i, w := range inputs {
		c.state.raise(i, w)
	}
	c.state.watermark = t
}

// Input returns where the i-th input's watermarks and statuses go.
func (c *Combination) Input(i int) Output { return &c.inputs[i] }

// Current returns the operator's watermark, MinTimestamp at first, and whether
// all inputs are idle.
func (c *Combination) Current() (watermark int64, idle bool) {
	return c.state.watermark, c.state.idle
}

// InputState returns the watermark and status of one input.
func (c *Combination) InputState(i int) (watermark int64, idle bool) {
	in := c.state.inputs[i]
	return in.watermark, in.idle
}

// Watermark makes the input active and forwards the operator's watermark if it
// rose. It forwards no status.
func (in *combinationInput) Watermark(t int64) error {
	c := in.combination
	c.state.raise(in.index, t)
	if c.state.update() {
		return c.out.Watermark(c.state.watermark)
	}
	return nil
}

// Status forwards the operator's watermark if it rose, and then the operator's
// status if it changed.
func (in *combinationInput) Status(idle bool) error {
	c := in.combination
	wasIdle := c.state.idle
	c.state.setIdle(in.index, idle)
	if c.state.update() {
		if err := c.out.Watermark(c.state.watermark); err != nil {
			return err
		}
	}
	if c.state.idle != wasIdle {
		return c.out.Status(c.state.idle)
	}
	return nil
}
