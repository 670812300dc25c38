package json

import "reflect"

// decodeSlice reads the array at i; depth counts the array. As encoding/json
// does, it reuses the elements of a slice that the same record filled before
// under the same name, so that a repeated member merges into the first.
func (v *value) decodeSlice(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	i, done, err := openArray(d, i, depth)
	if err != nil {
		return i, err
	}
	if done {
		s.value(v.typ).Set(reflect.MakeSlice(v.typ, 0, 0))
		return i, nil
	}
	h := s.slice()
	h.len = h.cap
	size := v.elem.typ.Size()
	n := 0
	for ; !done; n++ {
		if n == h.cap {
			s.value(v.typ).Grow(max(minGrowth, n))
			h.len = h.cap
		}
		if i, err = v.elem.decode(d, i, h.elem(n, size), depth); err != nil {
			return i, err.inElement(n)
		}
		if i, done, err = nextElement(d, i); err != nil {
			return i, err
		}
	}
	h.len = n
	return i, nil
}

// minGrowth is the number of elements a slice starts with.
const minGrowth = 4

// decodeArray reads the array at i into a Go array; depth counts the array.
// Elements beyond the Go array are left out, missing ones become zero.
func (v *value) decodeArray(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	if at(d, i) != '[' {
		return i, wanted(d, i, v.want)
	}
	i, done, err := openArray(d, i, depth)
	size := v.elem.typ.Size()
	n := 0
	for ; !done && err == nil; n++ {
		if n < v.len {
			i, err = v.elem.decode(d, i, s.at(uintptr(n)*size), depth)
		} else {
			i, err = skipValue(d, i, depth)
		}
		if err != nil {
			return i, err.inElement(n)
		}
		i, done, err = nextElement(d, i)
	}
	if err != nil {
		return i, err
	}
	for ; n < v.len; n++ {
		s.at(uintptr(n) * size).value(v.elem.typ).SetZero()
	}
	return i, nil
}

// decodeMap reads the object at i into a map with string keys; depth counts the
// object.
func (v *value) decodeMap(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	if at(d, i) != '{' {
		return i, wanted(d, i, v.want)
	}
	i, done, err := openObject(d, i, depth)
	if err != nil {
		return i, err
	}
	m := s.value(v.typ)
	if m.IsNil() {
		m.Set(reflect.MakeMap(v.typ))
	}
	if done {
		return i, nil
	}
	key := reflect.New(v.typ.Key()).Elem()
	elem := reflect.New(v.elem.typ)
	place := slotIn(elem)
	for !done {
		var name string
		if name, i, err = scanName(d, i); err != nil {
			return i, err
		}
		if i, err = v.elem.decode(d, i, place, depth); err != nil {
			return i, err.inField(name[:min(len(name), maxExcerpt)])
		}
		key.SetString(name)
		m.SetMapIndex(key, elem.Elem())
		elem.Elem().SetZero()
		if i, done, err = nextMember(d, i); err != nil {
			return i, err
		}
	}
	return i, nil
}

// scanName reads a member's name and colon and stops at its value.
func scanName(d []byte, i int) (string, int, *DecodeError) {
	end, kind, err := scanString(d, i+1)
	if err != nil {
		return "", end, err
	}
	name := newString(d[i+1:end], kind)
	i, err = scanColon(d, end+1)
	return name, i, err
}

// decodeAny reads the value at i as encoding/json does for an empty interface:
// nil, bool, float64, string, []any or map[string]any.
func decodeAny(d []byte, i, depth int) (any, int, *DecodeError) {
	switch at(d, i) {
	case '"':
		end, kind, err := scanString(d, i+1)
		if err != nil {
			return nil, end, err
		}
		return newString(d[i+1:end], kind), end + 1, nil
	case '{':
		return decodeAnyObject(d, i, depth+1)
	case '[':
		return decodeAnyArray(d, i, depth+1)
	case 't':
		i, err := scanWord(d, i, "true")
		return true, i, err
	case 'f':
		i, err := scanWord(d, i, "false")
		return false, i, err
	case 'n':
		i, err := scanWord(d, i, "null")
		return nil, i, err
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n, end, err := scanDecimal(d, i)
		if err != nil {
			return nil, end, err
		}
		f, ok := n.float64(d[i:end])
		if !ok {
			return nil, i, wanted(d, i, "a number that fits float64")
		}
		return f, end, nil
	default:
		return nil, i, wanted(d, i, "a value")
	}
}

func decodeAnyObject(d []byte, i, depth int) (any, int, *DecodeError) {
	i, done, err := openObject(d, i, depth)
	m := map[string]any{}
	for !done && err == nil {
		var name string
		if name, i, err = scanName(d, i); err != nil {
			return nil, i, err
		}
		if m[name], i, err = decodeAny(d, i, depth); err != nil {
			return nil, i, err.inField(name[:min(len(name), maxExcerpt)])
		}
		i, done, err = nextMember(d, i)
	}
	return m, i, err
}

func decodeAnyArray(d []byte, i, depth int) (any, int, *DecodeError) {
	i, done, err := openArray(d, i, depth)
	list := []any{}
	for !done && err == nil {
		var x any
		if x, i, err = decodeAny(d, i, depth); err != nil {
			return nil, i, err.inElement(len(list))
		}
		list = append(list, x)
		i, done, err = nextElement(d, i)
	}
	return list, i, err
}
