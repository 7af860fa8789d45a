package codec

import (
	"reflect"
	"slices"
)

// mostFields is how many fields of a struct can be written as a change; a longer one is written whole.
const mostFields = 64

// Same reports whether the encoder would write two values alike.
func Same[T any](e *Encoder, a, b *T) bool {
	v := reflect.ValueOf(a).Elem()
	return same(e.set.types[v.Type()], v, reflect.ValueOf(b).Elem())
}

func same(f *form, a, b reflect.Value) bool {
	switch {
	case f.fields != nil:
		for _, m := range f.fields {
			if !same(m.form, a.Field(m.index), b.Field(m.index)) {
				return false
			}
		}
		return true
	case f.elem != nil:
		return sameSlices(f.elem, a, b)
	case a.Kind() == reflect.String:
		return a.String() == b.String()
	case a.CanInt():
		return a.Int() == b.Int()
	case a.CanUint():
		return a.Uint() == b.Uint()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func sameSlices(elem *form, a, b reflect.Value) bool {
	if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
		return false
	}
	if a.UnsafePointer() == b.UnsafePointer() {
		return true
	}
	if x, ok := a.Addr().Interface().(*[]string); ok {
		y, _ := b.Addr().Interface().(*[]string)
		return slices.Equal(*x, *y)
	}
	for i := range a.Len() {
		if !same(elem, a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// WriteChange encodes a value that the reader will know as old: structs by the fields that differ, numbers as
// differences.
func WriteChange[T any](e *Encoder, old, x *T) {
	v := reflect.ValueOf(x).Elem()
	e.change(e.set.types[v.Type()], reflect.ValueOf(old).Elem(), v)
}

func (e *Encoder) change(f *form, old, v reflect.Value) {
	switch {
	case f.isPart():
		mask := uint64(0)
		for i, m := range f.fields {
			if !same(m.form, old.Field(m.index), v.Field(m.index)) {
				mask |= 1 << i
			}
		}
		e.Uint(mask)
		for i, m := range f.fields {
			if mask&(1<<i) != 0 {
				e.change(m.form, old.Field(m.index), v.Field(m.index))
			}
		}
	case f.elem != nil && f.elem.isPart() && !v.IsNil():
		e.Uint(uint64(v.Len()) + 1)
		for i := range v.Len() {
			if i < old.Len() {
				e.change(f.elem, old.Index(i), v.Index(i))
			} else {
				f.elem.encode(e, v.Index(i))
			}
		}
	case v.CanInt():
		e.Int(v.Int() - old.Int())
	default:
		f.encode(e, v)
	}
}

// isPart reports whether a struct is written as its changed fields.
func (f *form) isPart() bool { return len(f.fields) > 0 && len(f.fields) <= mostFields }

// ReadChange decodes what WriteChange has written. x holds the old value, which shares its slices with others.
func ReadChange[T any](d *Decoder, x *T) {
	v := reflect.ValueOf(x).Elem()
	d.change(d.set.types[v.Type()], v)
}

func (d *Decoder) change(f *form, v reflect.Value) {
	switch {
	case f.isPart():
		mask := d.Uint()
		for i, m := range f.fields {
			if mask&(1<<i) != 0 {
				d.change(m.form, v.Field(m.index))
			}
		}
	case f.elem != nil && f.elem.isPart():
		old := reflect.ValueOf(v.Interface())
		v.SetZero()
		d.slice(v, func(i int, at reflect.Value) {
			if i >= old.Len() {
				f.elem.decode(d, at)
				return
			}
			at.Set(old.Index(i))
			d.change(f.elem, at)
		})
	case v.CanInt():
		v.SetInt(v.Int() + d.Int())
	default:
		v.SetZero()
		f.decode(d, v)
	}
}
