package keyed

// entries is the map of one key in a map state: a list that is searched while it
// is short, else a table.
type entries[K comparable, V any] struct {
	few  []Entry[K, V]
	many *Table[K, V]
}

// maxFew is the most entries that are searched one by one.
const maxFew = 16

// mapKeys is what the maps of all keys in a state share.
type mapKeys[K comparable] struct {
	equality[K]
	hash func(K) uint64
}

func newMapKeys[K comparable]() (mapKeys[K], error) {
	hash, err := HasherFor[K]()
	return mapKeys[K]{equalityOf[K](), hash}, err
}

func (m *entries[K, V]) len() int {
	if m.many != nil {
		return m.many.Len()
	}
	return len(m.few)
}

// at returns entry i, valid until the next change.
func (m *entries[K, V]) at(i int) *Entry[K, V] {
	if m.many != nil {
		return m.many.At(i)
	}
	return &m.few[i]
}

// peek returns entry i for reading, valid until the next change.
func (m *entries[K, V]) peek(i int) *Entry[K, V] {
	if m.many != nil {
		return m.many.entry(uint32(i))
	}
	return &m.few[i]
}

// index returns the number of a key's entry, -1 if it has none.
func (m *entries[K, V]) index(keys *mapKeys[K], key K) int {
	return m.find(keys, keys.hash(key), key)
}

func (m *entries[K, V]) find(keys *mapKeys[K], hash uint64, key K) int {
	if m.many != nil {
		if i, e := m.many.find(hash, key); e != nil {
			return int(i)
		}
		return -1
	}
	for i := range m.few {
		if e := &m.few[i]; e.Hash == hash && keys.same(e.Key, key) {
			return i
		}
	}
	return -1
}

// put returns the value of a key's entry, made if need be.
func (m *entries[K, V]) put(keys *mapKeys[K], key K) *V {
	hash := keys.hash(key)
	if m.many == nil && len(m.few) == maxFew && m.find(keys, hash, key) < 0 {
		m.many = NewTable[K, V]()
		for _, e := range m.few {
			v, _ := m.many.Upsert(e.Hash, e.Key)
			*v = e.Value
		}
		m.few = nil
	}
	if m.many != nil {
		v, _ := m.many.Upsert(hash, key)
		return v
	}
	i := m.find(keys, hash, key)
	if i < 0 {
		i = len(m.few)
		m.few = append(m.few, Entry[K, V]{Hash: hash, Key: key})
	}
	return &m.few[i].Value
}

// deleteAt removes entry i. The last one takes its number.
func (m *entries[K, V]) deleteAt(i int) {
	if m.many != nil {
		m.many.DeleteAt(i)
		return
	}
	last := len(m.few) - 1
	m.few[i] = m.few[last]
	m.few[last] = Entry[K, V]{}
	m.few = m.few[:last]
}
