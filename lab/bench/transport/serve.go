package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/tilth-dev/tilth/internal/wire"
)

// What a tracker sets for its server and its collector.
const (
	readBufferBytes  = 4 << 10
	writeBufferBytes = 16 << 10
	headerTableBytes = 1 << 10
	mostStreams      = 1024
	ping             = 20 * time.Second
	memoryBytes      = 960 << 20
)

// orders are the line by which a server's process is told how to serve.
type orders struct {
	Way    way  `json:"way"`
	Opaque bool `json:"opaque,omitempty"`
	// Profile is the file for a profile of the processor time from the first usage to the end; empty = none.
	Profile string `json:"profile,omitempty"`
}

// serve is the server's process. It reads its orders from in, writes its address to out, and then answers each line
// with its usage until in ends.
func serve(in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	if !lines.Scan() {
		return fmt.Errorf("read how to serve: %w", io.ErrUnexpectedEOF)
	}
	var o orders
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return fmt.Errorf("read how to serve: %w", err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryBytes)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	t, err := newTracker(o.Opaque)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- o.listen(listener, t) }()
	if err := answers.Encode(listener.Addr().String()); err != nil {
		return err
	}
	stop := func() {}
	defer func() { stop() }()
	for first := true; lines.Scan(); first = false {
		u, err := ownUsage()
		if err != nil {
			return err
		}
		if first && o.Profile != "" {
			if stop, err = profile(o.Profile); err != nil {
				return err
			}
		}
		if err := answers.Encode(u); err != nil {
			return err
		}
	}
	select {
	case err := <-ended:
		return err
	default:
		return lines.Err()
	}
}

// profile writes a profile of the process's processor time until it is stopped.
func profile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return func() {}, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return func() {}, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// listen serves a tracker to all that connect.
func (o orders) listen(listener net.Listener, t *tracker) error {
	switch o.Way {
	case overLean:
		return serveLean(listener, t)
	case overHTTP:
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: o.server(t), Protocols: &protocols, HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: mostStreams, MaxDecoderHeaderTableSize: headerTableBytes, SendPingTimeout: ping,
			MaxReceiveBufferPerConnection: wire.WindowBytes, MaxReceiveBufferPerStream: wire.WindowBytes,
		}}
		return server.Serve(listener)
	default:
		return o.server(t).Serve(listener)
	}
}

// server is a gRPC server with a tracker's settings, and without what a tracker adds to it.
func (o orders) server(t *tracker) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(wire.MaxMessageBytes), grpc.MaxSendMsgSize(wire.MaxMessageBytes), grpc.MaxConcurrentStreams(mostStreams),
		grpc.InitialWindowSize(wire.WindowBytes), grpc.InitialConnWindowSize(wire.WindowBytes),
		grpc.ReadBufferSize(readBufferBytes), grpc.WriteBufferSize(writeBufferBytes), grpc.HeaderTableSize(headerTableBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: ping, Timeout: ping / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: ping / 4, PermitWithoutStream: true}),
	}
	if o.Opaque {
		options = append(options, grpc.ForceServerCodecV2(newOpaque()))
	}
	s := grpc.NewServer(options...)
	t.register(s)
	return s
}
