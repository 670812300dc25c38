package progress

// Valve turns the watermarks and statuses of all channels of one logical input
// into those of the input (spec watermarks 1).
//
// A channel that was idle and resumes behind the input's watermark is active but
// not aligned: it does not hold the watermark back until it has caught up. A
// change of one channel among n costs O(log n) at worst.
type Valve struct {
	out   Output
	rules Rules

	channels []ChannelState
	// aligned holds the watermarks of the aligned channels.
	aligned      minTree
	alignedCount int
	activeCount  int
	// largest of all channels' watermarks, which never fall.
	largest int64

	watermark int64
	idle      bool
}

// ChannelState is what a valve knows of one channel.
type ChannelState struct {
	// Watermark is MinTimestamp at first.
	Watermark int64
	Idle      bool
	// Aligned channels determine the minimum. Idle ones never are.
	Aligned bool
}

// NewValve returns a valve for channels that are active and have no watermark.
func NewValve(channels int, rules Rules, out Output) *Valve {
	v := &Valve{
		out:         out,
		rules:       rules,
		channels:    make([]ChannelState, channels),
		aligned:     newMinTree(channels),
		activeCount: channels,
		largest:     minTime,
		watermark:   minTime,
	}
	for i := range v.channels {
		v.channels[i].Watermark = minTime
		v.align(i)
	}
	return v
}

// Restore makes t what the valve last emitted and what every channel last sent. It emits
// nothing, and is called before anything arrives.
func (v *Valve) Restore(t int64) {
	for i := range v.channels {
		v.channels[i].Watermark = t
		v.align(i)
	}
	v.alignedCount = len(v.channels)
	v.largest, v.watermark = t, t
}

// Watermark takes watermark t from a channel.
func (v *Valve) Watermark(channel int, t int64) error {
	c := &v.channels[channel]
	if c.Idle || t <= c.Watermark {
		return nil
	}
	c.Watermark = t
	v.largest = max(v.largest, t)
	switch {
	case c.Aligned:
		v.aligned.set(channel, t)
	case t >= v.watermark:
		v.align(channel)
	}
	return v.emitMinimum()
}

// Status takes a status from a channel.
func (v *Valve) Status(channel int, idle bool) error {
	c := &v.channels[channel]
	if c.Idle == idle {
		return nil
	}
	c.Idle = idle
	if idle {
		return v.channelIdle(channel)
	}
	return v.channelActive(channel)
}

func (v *Valve) channelIdle(channel int) error {
	c := &v.channels[channel]
	v.activeCount--
	if c.Aligned {
		c.Aligned = false
		v.alignedCount--
		v.aligned.set(channel, maxTime)
	}
	heldBack := c.Watermark == v.watermark
	if v.activeCount > 0 {
		if heldBack {
			return v.emitMinimum()
		}
		return nil
	}
	// Nobody is left to hold back what the others had promised. Flink 2.3 forgets
	// it unless the last channel stood at the watermark (FLINK-40475).
	if heldBack || v.rules != Flink23 {
		if err := v.emit(v.largest); err != nil {
			return err
		}
	}
	v.idle = true
	return v.out.Status(true)
}

func (v *Valve) channelActive(channel int) error {
	v.activeCount++
	if v.channels[channel].Watermark >= v.watermark {
		v.align(channel)
	}
	if v.idle {
		v.idle = false
		if err := v.out.Status(false); err != nil {
			return err
		}
	}
	if v.rules == Flink23 {
		return nil
	}
	// The channel may now be the only aligned one, ahead of the watermark.
	// Flink 2.3 waits for its next watermark (FLINK-40475).
	return v.emitMinimum()
}

func (v *Valve) align(channel int) {
	c := &v.channels[channel]
	c.Aligned = true
	v.alignedCount++
	v.aligned.set(channel, c.Watermark)
}

// emitMinimum emits the minimum of the aligned channels if there are any and it
// rose.
func (v *Valve) emitMinimum() error {
	if v.alignedCount == 0 {
		return nil
	}
	return v.emit(v.aligned.min())
}

func (v *Valve) emit(t int64) error {
	if t <= v.watermark {
		return nil
	}
	v.watermark = t
	return v.out.Watermark(t)
}

// Current returns the last watermark that the valve emitted, MinTimestamp at
// first, and whether all channels are idle.
func (v *Valve) Current() (watermark int64, idle bool) { return v.watermark, v.idle }

// Channels returns the number of channels.
func (v *Valve) Channels() int { return len(v.channels) }

// Channel returns what is known of one channel.
func (v *Valve) Channel(i int) ChannelState { return v.channels[i] }
