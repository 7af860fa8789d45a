// Command old is a plugin that was written for the contract of version 2, which it keeps in strategy-2.binpb as protoc
// --descriptor_set_out wrote it. It shares no code with the SDK. Its argument is the newest version that it speaks. It plans
// every job behind the one before, and refuses messages with fields that its contract does not have.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

//go:embed strategy-2.binpb
var contract []byte

func main() {
	file, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	versions := map[int]plugin.PluginSet{1: {"strategy": &old{file: file}}}
	if len(os.Args) > 1 && os.Args[1] == "2" {
		versions[2] = versions[1]
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "EVOSLURM_STRATEGY", MagicCookieValue: "evoslurm.strategy"},
		VersionedPlugins: versions, GRPCServer: plugin.DefaultGRPCServer,
	})
}

func read() (protoreflect.FileDescriptor, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(contract, &set); err != nil {
		return nil, err
	}
	return protodesc.NewFile(set.File[0], nil)
}

type old struct {
	plugin.NetRPCUnsupportedPlugin
	file protoreflect.FileDescriptor
}

func (o *old) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("it is no client")
}

func (o *old) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "evoslurm.strategy.v1.Strategy", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Describe", Handler: o.describe}},
		Streams: []grpc.StreamDesc{{StreamName: "Plan", Handler: o.plan, ServerStreams: true, ClientStreams: true}},
	}, nil)
	return nil
}

func (o *old) message(name protoreflect.Name) *dynamicpb.Message {
	return dynamicpb.NewMessage(o.file.Messages().ByName(name))
}

func field(m *dynamicpb.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

func (o *old) describe(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(o.message("DescribeRequest")); err != nil {
		return nil, err
	}
	d := o.message("DescribeResponse")
	for name, text := range map[protoreflect.Name]string{"name": "old", "version": "1", "help": "One job after the other."} {
		d.Set(field(d, name), protoreflect.ValueOfString(text))
	}
	return d, nil
}

func (o *old) plan(_ any, call grpc.ServerStream) error {
	for {
		q := o.message("PlanRequest")
		if err := call.RecvMsg(q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if n := len(q.GetUnknown()); n > 0 {
			return fmt.Errorf("%d bytes of the request are not in my contract", n)
		}
		if err := call.SendMsg(o.answer(q)); err != nil {
			return err
		}
	}
}

// answer plans the jobs when nothing is busy.
func (o *old) answer(q *dynamicpb.Message) *dynamicpb.Message {
	a := o.message("PlanResponse")
	starts, durations := a.Mutable(field(a, "start")).List(), a.Mutable(field(a, "step_duration")).List()
	steps, lengths := q.Get(field(q, "job_steps")).List(), q.Get(field(q, "step_duration")).List()
	at, end := 0, int64(0)
	from, lasts := q.Get(field(q, "busy_start")).List(), q.Get(field(q, "busy_duration")).List()
	for i := range from.Len() {
		end = max(end, from.Get(i).Int()+lasts.Get(i).Int())
	}
	for i := range steps.Len() {
		starts.Append(protoreflect.ValueOfInt64(end))
		for range steps.Get(i).Uint() {
			durations.Append(lengths.Get(at))
			end += lengths.Get(at).Int()
			at++
		}
	}
	return a
}
