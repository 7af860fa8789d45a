package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"time"
)

// ErrMalformed reports that bytes are no values of the set.
var ErrMalformed = errors.New("malformed record")

// deepest bounds how deep values may be nested in each other.
const deepest = 200

// Decoder takes values from B. No length in B sizes memory before that much has been read.
type Decoder struct {
	B    []byte
	With any // for the specials of a set

	set   *Set
	err   error
	depth int
	read  *read // nil unless the set is a graph
}

// read holds what a graph has so far.
type read struct {
	objects []reflect.Value
	texts   []string
}

// Decoder returns a decoder that takes values from b.
func (s *Set) Decoder(b []byte, with any) *Decoder {
	d := &Decoder{B: b, With: with, set: s.made()}
	if s.options.Graph {
		d.read = &read{}
	}
	return d
}

// Read decodes a value of a type that the set has.
func Read[T any](d *Decoder, x *T) { d.Value(reflect.ValueOf(x).Elem()) }

// Value does what Read does, into a value that can be set.
func (d *Decoder) Value(v reflect.Value) {
	if d.err == nil {
		d.set.types[v.Type()].decode(d, v)
	}
}

// Err returns ErrMalformed if something could not be read.
func (d *Decoder) Err() error { return d.err }

// Fail says that the bytes are no values.
func (d *Decoder) Fail() { d.err, d.B = ErrMalformed, nil }

// enter reports whether values may be nested one deeper.
func (d *Decoder) enter() bool {
	if d.depth++; d.depth > deepest {
		d.Fail()
	}
	return d.err == nil
}

// Uint decodes a number.
func (d *Decoder) Uint() uint64 {
	n, size := binary.Uvarint(d.B)
	if size <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[size:]
	return n
}

// Int decodes a number.
func (d *Decoder) Int() int64 {
	n, size := binary.Varint(d.B)
	if size <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[size:]
	return n
}

func (d *Decoder) byte() byte {
	if len(d.B) == 0 {
		d.Fail()
		return 0
	}
	c := d.B[0]
	d.B = d.B[1:]
	return c
}

// Count decodes a number of things that each take a byte at least.
func (d *Decoder) Count() int {
	n := d.Uint()
	if n > uint64(len(d.B)) {
		d.Fail()
		return 0
	}
	return int(n)
}

// Text decodes a text.
func (d *Decoder) Text() string {
	n := d.Count()
	s := string(d.B[:n])
	d.B = d.B[n:]
	return s
}

// sharedText decodes a text that may have been there before.
func (d *Decoder) sharedText() string {
	if d.read == nil {
		return d.Text()
	}
	switch n := d.Uint(); {
	case n == none:
		return ""
	case n == fresh:
		s := d.Text()
		d.read.texts = append(d.read.texts, s)
		return s
	case n-earlier < uint64(len(d.read.texts)):
		return d.read.texts[n-earlier]
	}
	d.Fail()
	return ""
}

// Time decodes a time.
func (d *Decoder) Time() time.Time {
	zone := d.byte()
	if zone == 0 {
		return time.Time{}
	}
	second := d.Int()
	t := time.Unix(second, int64(d.Uint()%1e9))
	if zone == 1 {
		t = t.UTC()
	}
	return t
}

func decodeFloat(d *Decoder, v reflect.Value) {
	if len(d.B) < 8 {
		d.Fail()
		return
	}
	v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(d.B)))
	d.B = d.B[8:]
}

// decodeShared decodes a pointer or map that may have been there before.
func decodeShared(d *Decoder, v reflect.Value, content form) {
	n := d.Uint()
	switch {
	case n == none:
		return
	case n == fresh && d.enter():
		defer func() { d.depth-- }()
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if d.read != nil {
			d.read.objects = append(d.read.objects, reflect.ValueOf(v.Interface()))
		}
		content.decode(d, v)
		return
	case d.read != nil && n-earlier < uint64(len(d.read.objects)):
		if it := d.read.objects[n-earlier]; it.Type() == v.Type() {
			v.Set(it)
			return
		}
	}
	d.Fail()
}

// slice decodes a slice, given how to decode its i-th element.
func (d *Decoder) slice(v reflect.Value, elem func(i int, at reflect.Value)) {
	n := d.Uint()
	if n == 0 || !d.enter() {
		return
	}
	defer func() { d.depth-- }()
	if n--; n > uint64(len(d.B)) { // everything in slices takes a byte at least
		d.Fail()
		return
	}
	most := 1 + 1024/uint64(v.Type().Elem().Size()+1) // elements before any is read
	v.Set(reflect.MakeSlice(v.Type(), 0, int(min(n, most))))
	for i := 0; i < int(n) && d.err == nil; i++ {
		if i == v.Cap() {
			v.Grow(i)
		}
		v.SetLen(i + 1)
		elem(i, v.Index(i))
	}
}

func (d *Decoder) mapping(v reflect.Value, t reflect.Type, key, elem *form) {
	n := d.Count()
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	if !d.enter() {
		return
	}
	defer func() { d.depth-- }()
	for i := 0; i < n && d.err == nil; i++ {
		k, x := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		shared := d.read
		d.read = nil
		key.decode(d, k)
		d.read = shared
		elem.decode(d, x)
		v.SetMapIndex(k, x)
	}
}

func decodeInterface(d *Decoder, v reflect.Value) {
	code := d.Uint()
	if code == none || !d.enter() {
		return
	}
	defer func() { d.depth-- }()
	if code > uint64(len(d.set.values)) || !d.set.values[code-1].AssignableTo(v.Type()) {
		d.Fail()
		return
	}
	inner := reflect.New(d.set.values[code-1]).Elem()
	d.set.types[inner.Type()].decode(d, inner)
	v.Set(inner)
}
