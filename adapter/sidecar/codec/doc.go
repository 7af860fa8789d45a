// Package codec writes plain values as bytes and reads them again: what goes into the decision core and comes out
// of it, for the flight recorder, and the core's state.
//
//	codec.go   a set of types, compiled once
//	encode.go  values as bytes
//	decode.go  bytes as values, within bounds
//	change.go  values as what differs from others
//	values.go  the types behind the core's interfaces, and errors
//	seal.go    a heading with the version, and a checksum
//
// A value is plain if all of its fields are exported. A field with the tag `codec:"-"` is not written: it is a cache,
// or belongs to the process. The order of fields and types is part of the format, so only the version that wrote
// bytes reads them.
package codec
