package codec

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// Encoder appends values to B.
type Encoder struct {
	B    []byte
	With any // for the specials of a set

	// Rewrite, if set, returns what is written instead of a text.
	Rewrite func(string) string

	set     *Set
	err     error
	written *written // nil unless the set is a graph
}

// written holds what a graph has so far, by number.
type written struct {
	objects map[object]uint64
	texts   map[string]uint64
}

// object identifies a pointer or a map.
type object struct {
	of reflect.Type
	at uintptr
}

// Encoder returns an encoder that appends to b.
func (s *Set) Encoder(b []byte, with any) *Encoder {
	e := &Encoder{B: b, With: with, set: s.made()}
	if s.options.Graph {
		e.written = &written{map[object]uint64{}, map[string]uint64{}}
	}
	return e
}

// Write encodes a value of a type that the set has.
func Write[T any](e *Encoder, x *T) { e.Value(reflect.ValueOf(x).Elem()) }

// Value does what Write does.
func (e *Encoder) Value(v reflect.Value) {
	f := e.set.types[v.Type()]
	if f == nil {
		panic(fmt.Sprintf("codec: the set has no %v", v.Type()))
	}
	f.encode(e, v)
}

// Err returns why something could not be written.
func (e *Encoder) Err() error { return e.err }

// Uint encodes a number.
func (e *Encoder) Uint(n uint64) { e.B = binary.AppendUvarint(e.B, n) }

// Int encodes a number.
func (e *Encoder) Int(n int64) { e.B = binary.AppendVarint(e.B, n) }

// Text encodes a text.
func (e *Encoder) Text(s string) {
	if e.Rewrite != nil {
		s = e.Rewrite(s)
	}
	e.Uint(uint64(len(s)))
	e.B = append(e.B, s...)
}

// Time encodes a time.
func (e *Encoder) Time(t time.Time) {
	switch {
	case t.IsZero():
		e.B = append(e.B, 0)
		return
	case t.Location() == time.UTC:
		e.B = append(e.B, 1)
	default:
		e.B = append(e.B, 2)
	}
	e.Int(t.Unix())
	e.Uint(uint64(t.Nanosecond()))
}

// scalars holds the forms of simple kinds.
var scalars = func() map[reflect.Kind]form {
	all := map[reflect.Kind]form{
		reflect.Bool:    {encode: encodeBool, decode: func(d *Decoder, v reflect.Value) { v.SetBool(d.byte() != 0) }},
		reflect.Float64: {encode: encodeFloat, decode: decodeFloat},
		reflect.String:  {encode: encodeText, decode: func(d *Decoder, v reflect.Value) { v.SetString(d.sharedText()) }},
	}
	for _, kind := range []reflect.Kind{reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64} {
		all[kind] = form{encode: func(e *Encoder, v reflect.Value) { e.Int(v.Int()) }, decode: func(d *Decoder, v reflect.Value) { v.SetInt(d.Int()) }}
	}
	for _, kind := range []reflect.Kind{reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64} {
		all[kind] = form{encode: func(e *Encoder, v reflect.Value) { e.Uint(v.Uint()) }, decode: func(d *Decoder, v reflect.Value) { v.SetUint(d.Uint()) }}
	}
	return all
}()

func encodeBool(e *Encoder, v reflect.Value) {
	b := byte(0)
	if v.Bool() {
		b = 1
	}
	e.B = append(e.B, b)
}

func encodeFloat(e *Encoder, v reflect.Value) {
	e.B = binary.LittleEndian.AppendUint64(e.B, math.Float64bits(v.Float()))
}

// What is shared is 0 for nothing, 1 for a new one that follows, or its number plus 2.
const (
	none    = 0
	fresh   = 1
	earlier = 2
)

func encodeText(e *Encoder, v reflect.Value) {
	s := v.String()
	switch w := e.written; {
	case w == nil:
		e.Text(s)
	case s == "":
		e.Uint(none)
	default:
		n, known := w.texts[s]
		if known {
			e.Uint(n + earlier)
			return
		}
		w.texts[s] = uint64(len(w.texts))
		e.Uint(fresh)
		e.Text(s)
	}
}

// shared returns the form of a pointer or map, given how its content is written.
func shared(content form) form {
	return form{encode: func(e *Encoder, v reflect.Value) { encodeShared(e, v, content) },
		decode: func(d *Decoder, v reflect.Value) { decodeShared(d, v, content) }}
}

func encodeShared(e *Encoder, v reflect.Value, content form) {
	if v.IsNil() {
		e.Uint(none)
		return
	}
	if e.written == nil { // no graph, or the key of a map
		e.Uint(fresh)
		content.encode(e, v)
		return
	}
	it := object{v.Type(), v.Pointer()}
	if n, known := e.written.objects[it]; known {
		e.Uint(n + earlier)
		return
	}
	e.written.objects[it] = uint64(len(e.written.objects))
	e.Uint(fresh)
	content.encode(e, v)
}

func pointerForm(t reflect.Type, elem *form) form {
	return form{encode: func(e *Encoder, v reflect.Value) { elem.encode(e, v.Elem()) }, decode: func(d *Decoder, v reflect.Value) {
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		elem.decode(d, v.Elem())
	}}
}

func timeForm(t reflect.Type) form {
	if t == timeType {
		special := SpecialOf((*Encoder).Time, func(d *Decoder, at *time.Time) { *at = d.Time() })
		return form{encode: special.Encode, decode: special.Decode}
	}
	return form{encode: func(e *Encoder, v reflect.Value) {
		at, _ := v.Convert(timeType).Interface().(time.Time)
		e.Time(at)
	}, decode: func(d *Decoder, v reflect.Value) { v.Set(reflect.ValueOf(d.Time()).Convert(t)) }}
}

func sliceForm(elem *form) form {
	return form{encode: func(e *Encoder, v reflect.Value) {
		if v.IsNil() {
			e.Uint(0)
			return
		}
		e.Uint(uint64(v.Len()) + 1)
		for i := range v.Len() {
			elem.encode(e, v.Index(i))
		}
	}, decode: func(d *Decoder, v reflect.Value) { d.slice(v, func(_ int, at reflect.Value) { elem.decode(d, at) }) }, elem: elem}
}

func arrayForm(n int, elem *form) form {
	return form{encode: func(e *Encoder, v reflect.Value) {
		for i := range n {
			elem.encode(e, v.Index(i))
		}
	}, decode: func(d *Decoder, v reflect.Value) {
		for i := range n {
			elem.decode(d, v.Index(i))
		}
	}}
}

func structForm(fields []member) form {
	return form{encode: func(e *Encoder, v reflect.Value) {
		for _, f := range fields {
			f.form.encode(e, v.Field(f.index))
		}
	}, decode: func(d *Decoder, v reflect.Value) {
		for _, f := range fields {
			f.form.decode(d, v.Field(f.index))
		}
	}, fields: fields}
}

// mapForm writes a map in the order of its encoded keys. Keys share nothing.
func mapForm(t reflect.Type, key, elem *form) form {
	return form{encode: func(e *Encoder, v reflect.Value) {
		pairs := make(map[string]reflect.Value, v.Len())
		one := Encoder{set: e.set, Rewrite: e.Rewrite}
		for it := v.MapRange(); it.Next(); {
			one.B = one.B[:0]
			key.encode(&one, it.Key())
			pairs[string(one.B)] = it.Value()
		}
		e.Uint(uint64(len(pairs)))
		for _, k := range slices.Sorted(maps.Keys(pairs)) {
			e.B = append(e.B, k...)
			elem.encode(e, pairs[k])
		}
	}, decode: func(d *Decoder, v reflect.Value) { d.mapping(v, t, key, elem) }}
}

func encodeInterface(e *Encoder, v reflect.Value) {
	if v.IsNil() {
		e.Uint(none)
		return
	}
	inner := v.Elem()
	code, known := e.set.codes[inner.Type()]
	if !known {
		if e.set.options.Graph && e.err == nil {
			e.err = fmt.Errorf("codec: a value of type %v cannot be written", inner.Type())
		}
		inner = reflect.ValueOf(fmt.Sprint(inner.Interface()))
		code = e.set.codes[inner.Type()]
	}
	e.Uint(uint64(code) + 1)
	e.set.types[inner.Type()].encode(e, inner)
}
