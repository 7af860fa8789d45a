package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// errMalformed says that bytes are no values of ours.
var errMalformed = errors.New("malformed record")

var (
	timeType        = reflect.TypeFor[time.Time]()
	errorType       = reflect.TypeFor[error]()
	problemType     = reflect.TypeFor[*msg.Problem]()
	attemptType     = reflect.TypeFor[msg.Attempt]()
	observationType = reflect.TypeFor[msg.Observation]()
	plannedType     = reflect.TypeFor[msg.Planned]()

	savePlanType = reflect.TypeFor[msg.SavePlan]()
)

// encoder appends values to b.
type encoder struct {
	b    []byte
	seen *seen // what polls and plans are differences to
}

// value encodes v, which must be addressable if it has unexported fields.
func (e *encoder) value(v reflect.Value) {
	switch v.Type() {
	case timeType:
		e.time(v.Interface().(time.Time))
		return
	case errorType:
		err, _ := v.Interface().(error)
		e.error(err)
		return
	case problemType, attemptType:
		return // it follows from the state
	case savePlanType:
		e.savePlan(v.Addr().Interface().(*msg.SavePlan))
		return
	case observationType:
		if e.seen != nil {
			e.poll(v.Addr().Interface().(*msg.Observation))
			return
		}
	case plannedType:
		if e.seen != nil {
			e.planned(v.Addr().Interface().(*msg.Planned))
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		b := byte(0)
		if v.Bool() {
			b = 1
		}
		e.b = append(e.b, b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.b = binary.AppendVarint(e.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.uint(v.Uint())
	case reflect.Float64:
		e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(v.Float()))
	case reflect.String:
		e.text(v.String())
	case reflect.Slice:
		if v.IsNil() {
			e.uint(0)
			return
		}
		e.uint(uint64(v.Len()) + 1)
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Map:
		e.mapping(v)
	case reflect.Pointer:
		if v.IsNil() {
			e.uint(0)
			return
		}
		e.uint(1)
		e.value(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			e.value(field(v, i))
		}
	case reflect.Interface:
		e.dynamic(v)
	default:
		panic(fmt.Sprintf("recorder: unknown type %v", v.Type()))
	}
}

// field returns a field of a struct, even an unexported one.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	if f.CanInterface() || !f.CanAddr() {
		return f
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() //nolint:gosec // the limits of slurmctl are its own
}

// addressable returns v in a form whose fields can be accessed.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	return to
}

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) time(t time.Time) {
	switch {
	case t.IsZero():
		e.b = append(e.b, 0)
		return
	case t.Location() == time.UTC:
		e.b = append(e.b, 1)
	default:
		e.b = append(e.b, 2)
	}
	e.b = binary.AppendVarint(e.b, t.Unix())
	e.uint(uint64(t.Nanosecond()))
}

// mapping encodes a map in the order of its encoded keys.
func (e *encoder) mapping(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	pairs := make(map[string]reflect.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		key := encoder{}
		key.value(addressable(it.Key()))
		pairs[string(key.b)] = it.Value()
	}
	e.uint(uint64(len(pairs)) + 1)
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		e.b = append(e.b, key...)
		e.value(addressable(pairs[key]))
	}
}

// dynamic encodes a value with its type. What has none that is known here is kept as text.
func (e *encoder) dynamic(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	inner := v.Elem()
	code, known := codes[inner.Type()]
	if !known {
		inner = reflect.ValueOf(fmt.Sprint(inner.Interface()))
		code = codes[inner.Type()]
	}
	e.uint(uint64(code) + 1)
	e.value(addressable(inner))
}

// decoder takes values from b.
type decoder struct {
	b     []byte
	err   error
	seen  *seen
	depth int
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errMalformed
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// count returns a number of things that each take a byte at least.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) time() time.Time {
	zone := d.byte()
	if zone == 0 {
		return time.Time{}
	}
	second := d.int()
	t := time.Unix(second, int64(d.uint()%1e9))
	if zone == 1 {
		t = t.UTC()
	}
	return t
}

// value decodes into v, which must be settable.
func (d *decoder) value(v reflect.Value) {
	if d.err != nil {
		return
	}
	if d.depth++; d.depth > 200 {
		d.fail()
		return
	}
	defer func() { d.depth-- }()
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(d.time()))
		return
	case errorType:
		if err := d.error(); err != nil {
			v.Set(reflect.ValueOf(err))
		}
		return
	case problemType, attemptType:
		return
	case savePlanType:
		d.savePlan(v.Addr().Interface().(*msg.SavePlan))
		return
	case observationType:
		if d.seen != nil {
			d.poll(v.Addr().Interface().(*msg.Observation))
			return
		}
	case plannedType:
		if d.seen != nil {
			d.planned(v.Addr().Interface().(*msg.Planned))
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.byte() != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(d.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.uint())
	case reflect.Float64:
		if len(d.b) < 8 {
			d.fail()
			return
		}
		v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(d.b)))
		d.b = d.b[8:]
	case reflect.String:
		v.SetString(d.text())
	case reflect.Slice:
		d.slice(v)
	case reflect.Map:
		d.mapping(v)
	case reflect.Pointer:
		if d.uint() != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(field(v, i))
		}
	case reflect.Interface:
		d.dynamic(v)
	default:
		d.fail()
	}
}

func (d *decoder) slice(v reflect.Value) {
	n := d.uint()
	if n == 0 {
		return
	}
	if n--; n > uint64(len(d.b)) { // everything in slices takes a byte at least
		d.fail()
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(int(n), 64)))
	for i := 0; i < int(n) && d.err == nil; i++ {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		d.value(v.Index(i))
	}
}

func (d *decoder) mapping(v reflect.Value) {
	n := d.uint()
	if n == 0 {
		return
	}
	if n--; n > uint64(len(d.b)) {
		d.fail()
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i < int(n) && d.err == nil; i++ {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		d.value(key)
		d.value(value)
		v.SetMapIndex(key, value)
	}
}

func (d *decoder) dynamic(v reflect.Value) {
	code := d.uint()
	if code == 0 {
		return
	}
	if code > uint64(len(types)) || !types[code-1].AssignableTo(v.Type()) {
		d.fail()
		return
	}
	inner := reflect.New(types[code-1]).Elem()
	d.value(inner)
	v.Set(inner)
}

// schema returns all recorded types with their fields: a different schema is a different format.
func schema() string {
	var b strings.Builder
	known := map[reflect.Type]bool{}
	var tell func(t reflect.Type)
	tell = func(t reflect.Type) {
		if known[t] || t == timeType || t == errorType || t == problemType {
			return
		}
		known[t] = true
		switch t.Kind() {
		case reflect.Struct:
			fmt.Fprintf(&b, "%v {", t)
			for i := range t.NumField() {
				fmt.Fprintf(&b, " %s %v;", t.Field(i).Name, t.Field(i).Type)
			}
			b.WriteString(" }\n")
			for i := range t.NumField() {
				tell(t.Field(i).Type)
			}
		case reflect.Slice, reflect.Pointer:
			tell(t.Elem())
		case reflect.Map:
			tell(t.Key())
			tell(t.Elem())
		default:
			fmt.Fprintf(&b, "%v %v\n", t, t.Kind())
		}
	}
	tell(reflect.TypeFor[Start]())
	for _, t := range types {
		fmt.Fprintln(&b, t)
		tell(t)
	}
	for _, s := range sentinels {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}
