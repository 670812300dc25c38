package gaps

import "encoding/binary"

// trace is the times of one partition's records in their order, at a few bytes a record:
// each is the difference to the one before.
type trace struct {
	data                  []byte
	appendTime, eventTime int64
}

// add appends a record. appendTime must not fall. Both are milliseconds.
func (t *trace) add(appendTime, eventTime int64) {
	t.data = binary.AppendUvarint(t.data, uint64(appendTime-t.appendTime))
	t.data = binary.AppendVarint(t.data, eventTime-t.eventTime)
	t.appendTime, t.eventTime = appendTime, eventTime
}

// cursor reads a trace. The trace must not grow meanwhile.
type cursor struct {
	partition             int
	rest                  []byte
	appendTime, eventTime int64
}

// next moves to the next record and reports whether there is one.
func (c *cursor) next() bool {
	if len(c.rest) == 0 {
		return false
	}
	later, n := binary.Uvarint(c.rest)
	event, m := binary.Varint(c.rest[n:])
	c.rest = c.rest[n+m:]
	c.appendTime += int64(later)
	c.eventTime += event
	return true
}

// merge is the records of several partitions in the order of their append times, ties in
// the order of the partitions.
type merge struct {
	// heap has the cursor that is next in front.
	heap []*cursor
}

func newMerge(partitions []*Partition) *merge {
	m := &merge{}
	for i, p := range partitions {
		c := &cursor{partition: i, rest: p.trace.data}
		if c.next() {
			m.heap = append(m.heap, c)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// head returns the next record, nil at the end. It is valid until advance.
func (m *merge) head() *cursor {
	if len(m.heap) == 0 {
		return nil
	}
	return m.heap[0]
}

func (m *merge) advance() {
	if !m.heap[0].next() {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
}

func (m *merge) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.heap[child].before(m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

func (c *cursor) before(o *cursor) bool {
	if c.appendTime != o.appendTime {
		return c.appendTime < o.appendTime
	}
	return c.partition < o.partition
}
