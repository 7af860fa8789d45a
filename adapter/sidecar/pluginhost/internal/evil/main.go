// Command evil is a plugin for tests: it plans well, until the parameter mode
// makes it do what no strategy should.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/builtin"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// stdout is the real one: go-plugin replaces it by a pipe.
var stdout = os.Stdout

// version is set by the linker, to distinguish two executables.
var version = "1"

type evil struct{ pb.UnimplementedStrategyServer }

func (evil) Describe(_ context.Context, m *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	switch m.Parameters["mode"] {
	case "describe-hangs":
		select {}
	case "describe-garbage":
		return &pb.DescribeResponse{Name: "evil", Help: "\x1b[2J", ExpandLimit: math.NaN()}, nil
	case "other-name":
		return &pb.DescribeResponse{Name: "other", Version: version}, nil
	}
	return &pb.DescribeResponse{Name: "evil", Version: version, Help: "Not for use.", ExpandLimit: 1, Parameters: []*pb.Parameter{
		{Name: "mode", Type: pb.Type_TYPE_STRING, Help: "what to do wrong"},
		{Name: "note", Type: pb.Type_TYPE_STRING, Help: "a file that gets a line for every call of Plan: its requests and their jobs"},
	}}, nil
}

// serve answers one call of Plan, and notes it in the file "note".
func (e evil) serve(call grpc.ServerStream) error {
	requests, jobs, note := 0, 0, ""
	defer func() {
		if note == "" {
			return
		}
		f, err := os.OpenFile(note, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%d %d\n", requests, jobs)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for {
		m := new(pb.PlanRequest)
		if err := call.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if isFirst := m.Nodes == 4 && len(m.JobStart) == 2; !isFirst {
			note = m.Parameters["note"]
			switch m.Parameters["mode"] {
			case "ends": // without an answer
				return nil
			case "second": // is not answered
				if requests == 1 {
					select {}
				}
			case "twice":
				if answer, err := honest(m); err != nil || call.SendMsg(answer) != nil {
					return err
				}
			}
		}
		requests, jobs = requests+1, jobs+len(m.JobStart)
		answer, err := e.plan(m)
		if err != nil {
			return err
		}
		if err := call.SendMsg(answer); err != nil {
			return err
		}
	}
}

func (e evil) plan(m *pb.PlanRequest) (proto.Message, error) {
	good, err := honest(m)
	if err != nil || m.Nodes == 4 && len(m.JobStart) == 2 { // the first look at it
		return good, err
	}
	for i := range good.Start {
		if len(m.JobPinned) > 0 && m.JobPinned[i] {
			good.Start[i] = m.JobStart[i]
		}
	}
	last := len(good.Start) - 1
	switch m.Parameters["mode"] {
	case "exit":
		os.Exit(0)
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "panic":
		panic("evil")
	case "hang":
		select {}
	case "stop":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "late":
		time.Sleep(time.Minute)
	case "garbage":
		return &pb.DescribeResponse{Name: strings.Repeat("\x7f\u00ff", 100), Version: "x"}, nil
	case "empty":
		return &pb.PlanResponse{}, nil
	case "overfull": // all at once, though there is room for one
		for i := range good.Start {
			good.Start[i] = m.JobStart[i]
		}
		good.StepDuration = append([]int64(nil), m.StepDuration...)
	case "moves-pinned":
		good.Start[0]--
	case "too-early":
		good.Start[last] = m.JobStart[last] - 10
	case "too-late":
		good.Start[last] += 1 << 40
	case "nan": // no time is a float: what NaN, infinity and overflow are as integers
		nan := math.NaN()
		good.Start[last] = int64(nan)
	case "overflow":
		good.Start[last], good.StepDuration[len(good.StepDuration)-1] = math.MaxInt64-1, math.MaxInt64-1
	case "negative":
		good.StepDuration[len(good.StepDuration)-1] *= -1
	case "stretched":
		good.StepDuration[len(good.StepDuration)-1] *= 2
	case "few":
		good.Start = good.Start[:last]
	case "many":
		good.Start, good.StepDuration = append(good.Start, 0), append(good.StepDuration, 1)
	case "few-steps":
		good.StepDuration = good.StepDuration[:len(good.StepDuration)-1]
	case "unfit":
		good.Unfit, good.UnfitReason = []uint32{uint32(last)}, []string{"no"}
	case "unfit-wild":
		good.Unfit, good.UnfitReason = []uint32{math.MaxUint32}, []string{"no"}
	case "gigabyte":
		good.UnfitReason = []string{string(bytes.Repeat([]byte{'x'}, 1<<30))}
	case "leak":
		var kept [][]byte
		for {
			kept = append(kept, bytes.Repeat([]byte{1}, 16<<20))
			time.Sleep(time.Millisecond)
			runtime.KeepAlive(kept)
		}
	case "leak-in-fork":
		spawn("for i in 1 2 3 4; do head -c 100M /dev/zero | tail -c 100M | sleep 1000 & done; wait")
		time.Sleep(time.Minute)
	case "stdout":
		fmt.Println("hello")
		stdout.WriteString(strings.Repeat("x", 10<<20))
		os.Stderr.WriteString(strings.Repeat("y", 1<<20) + strings.Repeat("\nz", 1<<18))
	case "forks":
		for range 5 {
			spawn("sleep 1000 & setsid sleep 1000 & sleep 1000")
		}
	case "forks-and-exits":
		spawn("setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000'")
		time.Sleep(100 * time.Millisecond)
		os.Exit(3)
	case "fork-bomb":
		spawn("f() { sleep 60 & f & f; }; f")
		time.Sleep(time.Minute)
	}
	return good, nil
}

// spawn starts a shell in a session of its own that keeps the plugin's pipes open.
func spawn(script string) {
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout, cmd.Stderr = stdout, stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// honest plans without expanding.
func honest(m *pb.PlanRequest) (*pb.PlanResponse, error) {
	p := planner.Problem{Nodes: int(m.Nodes)}
	for i := range m.BusyStart {
		p.Busy = append(p.Busy, planner.Busy{Start: m.BusyStart[i], Duration: m.BusyDuration[i], Nodes: int(m.BusyNodes[i])})
	}
	first := 0
	for i, n := range m.JobSteps {
		j := planner.Job{Submit: m.JobStart[i], ExpandLimit: 1}
		for range n {
			j.Profile = append(j.Profile, planner.Step{Duration: m.StepDuration[first], Nodes: int(m.StepNodes[first])})
			first++
		}
		if len(m.JobPinned) == 0 || !m.JobPinned[i] {
			p.Jobs = append(p.Jobs, j)
		}
	}
	d, _ := builtin.Find("klein")
	s, err := d.New(map[string]string{"expand_limit": "1", "compact": "false"})
	if err != nil {
		return nil, err
	}
	schedule, err := s.Plan(p)
	if err != nil {
		return nil, err
	}
	answer := &pb.PlanResponse{StepDuration: m.StepDuration}
	next := 0
	for i := range m.JobStart {
		if len(m.JobPinned) > 0 && m.JobPinned[i] {
			answer.Start = append(answer.Start, m.JobStart[i])
			continue
		}
		answer.Start = append(answer.Start, schedule[next].Start)
		next++
	}
	return answer, nil
}

type evilPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (evilPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// GRPCServer serves Plan with answers of any type.
func (evilPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	d := pb.Strategy_ServiceDesc
	d.Streams = append([]grpc.StreamDesc(nil), d.Streams...)
	for i := range d.Streams {
		if d.Streams[i].StreamName == "Plan" {
			d.Streams[i].Handler = func(srv any, call grpc.ServerStream) error { return srv.(evil).serve(call) }
		}
	}
	s.RegisterService(&d, evil{})
	return nil
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "EVOSLURM_STRATEGY", MagicCookieValue: "evoslurm.strategy"},
		Plugins:         plugin.PluginSet{"strategy": evilPlugin{}},
		GRPCServer:      plugin.DefaultGRPCServer,
		Logger:          hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr}),
	})
}
