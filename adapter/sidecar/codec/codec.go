package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	timeType  = reflect.TypeFor[time.Time]()
	errorType = reflect.TypeFor[error]()
)

// Options says which types a set has, and how it writes them.
type Options struct {
	Roots   []any                    // values of the types that are written as such
	Values  []any                    // values of the types that interfaces may hold; their order is part of the format
	Special map[reflect.Type]Special // types that are written in their own way

	// Graph writes what a pointer or a map stands for once, however many refer to it, and each text once. A value of
	// another type than Values in an interface is then an error. Otherwise its text is written.
	Graph bool
}

// Special writes and reads a type in its own way. The zero Special writes nothing.
type Special struct {
	Encode func(*Encoder, reflect.Value)
	Decode func(*Decoder, reflect.Value)
}

// Set holds the types that can be written. Its first use makes it, for most commands never use it; then it never changes.
type Set struct {
	options Options
	once    sync.Once
	types   map[reflect.Type]*form
	values  []reflect.Type
	codes   map[reflect.Type]int
	schema  strings.Builder // until it is made
	format  string
}

// form writes and reads the values of a type.
type form struct {
	encode func(*Encoder, reflect.Value)
	decode func(*Decoder, reflect.Value)
	fields []member // of a struct that is written field by field
	elem   *form    // of a slice
}

// SpecialOf returns a Special, given how the type is written and read.
func SpecialOf[T any](write func(*Encoder, T), read func(*Decoder, *T)) Special {
	return Special{func(e *Encoder, v reflect.Value) {
		if v.CanAddr() { // does not allocate
			x, _ := v.Addr().Interface().(*T)
			write(e, *x)
			return
		}
		x, _ := v.Interface().(T)
		write(e, x)
	}, func(d *Decoder, v reflect.Value) {
		x, _ := v.Addr().Interface().(*T)
		read(d, x)
	}}
}

// New returns a set, whose first use panics if a type cannot be written.
func New(o Options) *Set { return &Set{options: o} }

// made returns the set, and makes it first if necessary.
func (s *Set) made() *Set {
	s.once.Do(s.fill)
	return s
}

func (s *Set) fill() {
	s.types, s.codes = map[reflect.Type]*form{}, map[reflect.Type]int{}
	s.schema.WriteString(layout)
	for i, v := range s.options.Values {
		t := reflect.TypeOf(v)
		s.values = append(s.values, t)
		s.codes[t] = i
	}
	for _, v := range slices.Concat(s.options.Roots, s.options.Values) {
		s.form(reflect.TypeOf(v))
	}
	for _, err := range sentinels {
		fmt.Fprintln(&s.schema, err)
	}
	sum := sha256.Sum256([]byte(s.schema.String()))
	s.format = hex.EncodeToString(sum[:6])
	s.schema.Reset()
}

// layout changes whenever values of the same types are written in another way.
const layout = "layout 2\n"

// Format identifies the format: it differs if any type, field, or known error does.
func (s *Set) Format() string { return s.made().format }

// Values returns the types that interfaces may hold.
func (s *Set) Values() []reflect.Type { return s.made().values }

// form returns the form of a type, and makes it first if necessary.
func (s *Set) form(t reflect.Type) *form {
	if f := s.types[t]; f != nil {
		return f
	}
	f := &form{}
	s.types[t] = f
	fmt.Fprintf(&s.schema, "%v %v\n", t, t.Kind())
	if special, ok := s.options.Special[t]; ok {
		if special.Encode == nil {
			special = Special{func(*Encoder, reflect.Value) {}, func(*Decoder, reflect.Value) {}}
		}
		*f = form{encode: special.Encode, decode: special.Decode}
		return f
	}
	*f = s.make(t)
	return f
}

// make returns the form of a type that is not known yet.
func (s *Set) make(t reflect.Type) form {
	switch {
	case t == errorType:
		s.form(reflect.TypeFor[Error]())
		return form{encode: encodeError, decode: decodeError}
	case t.Kind() == reflect.Struct && t.ConvertibleTo(timeType):
		return timeForm(t)
	}
	switch t.Kind() {
	case reflect.Slice:
		return sliceForm(s.form(t.Elem()))
	case reflect.Array:
		return arrayForm(t.Len(), s.form(t.Elem()))
	case reflect.Map:
		return shared(mapForm(t, s.form(t.Key()), s.form(t.Elem())))
	case reflect.Pointer:
		return shared(pointerForm(t, s.form(t.Elem())))
	case reflect.Struct:
		return structForm(s.fields(t))
	case reflect.Interface:
		return form{encode: encodeInterface, decode: decodeInterface}
	}
	f, known := scalars[t.Kind()]
	if !known {
		panic(fmt.Sprintf("codec: no way to write %v", t))
	}
	return f
}

// member is a field of a struct.
type member struct {
	index int
	form  *form
}

// fields returns the fields of a struct that are written.
func (s *Set) fields(t reflect.Type) (all []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("codec") == "-" {
			continue
		}
		if !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct) {
			panic(fmt.Sprintf("codec: %v.%s is not exported", t, f.Name))
		}
		fmt.Fprintf(&s.schema, "  %s %v\n", f.Name, f.Type)
		all = append(all, member{i, s.form(f.Type)})
	}
	return all
}
