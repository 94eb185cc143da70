package agent

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// stream is the interceptor of streams. It must be the outermost. The first message of a stream about a job
// or an artifact determines its shard.
func (s *shards) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !wire.AnyShard(method) {
		return &shardedStream{
			shards: s, ctx: ctx,
			open: func(ctx context.Context) (grpc.ClientStream, error) { return open(ctx, desc, conn, method, opts...) },
			ask:  func(ctx context.Context, shard int) error { return s.alive(ctx, conn, shard) },
		}, nil
	}
	if s.several {
		if err := s.find(ctx, conn); err != nil {
			return nil, err
		}
	}
	return open(ctx, desc, conn, method, opts...)
}

// find selects the serving tracker with a unary call that moves on to the next tracker, because a stream is
// only refused after it began.
func (s *shards) find(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := tilthv1.NewJobServiceClient(conn).ListJobs(ctx, &tilthv1.ListJobsRequest{Limit: 1})
	if standsBy(err) {
		return err
	}
	return nil // the stream reports any other error
}

// shardedStream is a stream to one shard, to all of them, or to one after the other until one has the requested data.
// Like any stream, it is used by one sending and one receiving goroutine, and receives after sending.
type shardedStream struct {
	*shards
	ctx  context.Context
	open func(context.Context) (grpc.ClientStream, error)
	ask  func(ctx context.Context, shard int) error // checks whether a shard's tracker responds
	to   []grpc.ClientStream                        // streams in progress
	// failed is why the stream could not be opened, or nil.
	failed error
	// next lists the shards to ask after the current one; request is the message to send.
	next    []int
	request any
}

// begin opens the stream with its first message.
func (s *shardedStream) begin(m any) error {
	shard := shardNamed(s.ctx, m)
	n := int(s.count.Load())
	if n == 0 && shard < 0 {
		return s.add(s.ctx)
	}
	if shard >= 0 {
		return s.add(toShard(s.ctx, shard))
	}
	if _, is := m.(*tilthv1.DownloadArtifactRequest); is {
		s.request = m
		for shard := range n {
			s.next = append(s.next, shard)
		}
		return s.askNextShard()
	}
	for shard := range n {
		if err := s.addAttended(shard); err != nil {
			return err
		}
	}
	return nil
}

func (s *shardedStream) add(ctx context.Context) error {
	to, err := s.open(ctx)
	if err == nil {
		s.to = append(s.to, to)
	}
	return err
}

// addAttended adds the stream to one of all shards.
func (s *shardedStream) addAttended(shard int) error {
	ctx, end := context.WithCancel(s.ctx)
	to, err := s.open(toShard(ctx, shard))
	if err != nil {
		end()
		return err
	}
	s.to = append(s.to, &attendedStream{ClientStream: to, shard: shard, of: s, end: end})
	return nil
}

// askNextShard asks the next shard.
func (s *shardedStream) askNextShard() error {
	s.to = nil
	err := s.addAttended(s.next[0])
	s.next = s.next[1:]
	return err
}

// SendMsg implements grpc.ClientStream. It sends concurrently to all shards whose stream is still open; a
// shard that already has an upload ends its stream early. It returns io.EOF once all streams have ended.
func (s *shardedStream) SendMsg(m any) error {
	if s.to == nil {
		if s.failed = s.begin(m); s.failed != nil {
			return s.failed
		}
	}
	sent := make([]error, len(s.to))
	var all sync.WaitGroup
	for i, to := range s.to[1:] { // in parallel, so that none delays the others
		all.Go(func() { sent[i+1] = to.SendMsg(m) })
	}
	sent[0] = s.to[0].SendMsg(m)
	all.Wait()
	ended := 0
	for _, err := range sent {
		switch {
		case errors.Is(err, io.EOF): // RecvMsg returns the cause
			ended++
		case err != nil:
			return err
		}
	}
	if ended == len(s.to) {
		return io.EOF
	}
	return nil
}

// RecvMsg implements grpc.ClientStream. With several shards it returns the last response if none failed.
func (s *shardedStream) RecvMsg(m any) error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.to == nil:
		return status.Error(codes.Internal, "nothing was sent yet")
	case len(s.to) > 1:
		return s.receiveAll(m)
	}
	last := s.to[0].RecvMsg(m)
	if len(s.next) == 0 || status.Code(last) != codes.NotFound {
		s.next = nil // a started response is not restarted elsewhere
		return last
	}
	if err := s.askNextShard(); err != nil {
		return err
	}
	if err := s.to[0].SendMsg(s.request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := s.to[0].CloseSend(); err != nil {
		return err
	}
	return s.RecvMsg(m)
}

// receiveAll receives from all shards. Of several errors it returns a transient one if there is any, because
// it may have caused the others, and the caller can retry.
func (s *shardedStream) receiveAll(m any) (err error) {
	into := m.(proto.Message)
	answers, said := make([]proto.Message, len(s.to)), make([]error, len(s.to))
	var all sync.WaitGroup
	for i, to := range s.to {
		answers[i] = into.ProtoReflect().New().Interface()
		all.Go(func() { said[i] = to.RecvMsg(answers[i]) })
	}
	all.Wait()
	for _, said := range said {
		if said != nil && (err == nil || retry.Lost(said) && !retry.Lost(err)) {
			err = said
		}
	}
	if err == nil {
		proto.Reset(into)
		proto.Merge(into, answers[len(answers)-1])
	}
	return err
}

// CloseSend implements grpc.ClientStream.
func (s *shardedStream) CloseSend() error {
	for _, to := range s.to {
		if err := to.CloseSend(); err != nil {
			return err
		}
	}
	return nil
}

// Header implements grpc.ClientStream.
func (s *shardedStream) Header() (metadata.MD, error) {
	if s.to == nil {
		return metadata.MD{}, nil
	}
	return s.to[0].Header()
}

// Trailer implements grpc.ClientStream.
func (s *shardedStream) Trailer() metadata.MD {
	if s.to == nil {
		return metadata.MD{}
	}
	return s.to[0].Trailer()
}

// Context implements grpc.ClientStream.
func (s *shardedStream) Context() context.Context { return s.ctx }

// attendedStream is a stream to one of all shards that ends if the shard's tracker stops responding.
type attendedStream struct {
	grpc.ClientStream
	shard int
	of    *shardedStream
	end   context.CancelFunc
	// silent is why the stream was ended, or nil.
	silent error
}

func (s *attendedStream) attend(do func() error) error {
	if s.silent != nil {
		return s.silent
	}
	ended := false
	err := attend(s.of.ctx, s.shard, func(ctx context.Context) error { return s.of.ask(ctx, s.shard) }, func() {
		ended = true
		s.end()
	}, do)
	if ended {
		s.silent = err
	}
	return err
}

// SendMsg implements grpc.ClientStream.
func (s *attendedStream) SendMsg(m any) error {
	err := s.attend(func() error { return s.ClientStream.SendMsg(m) })
	if s.silent != nil {
		return io.EOF // like any stream that has ended
	}
	return err
}

// RecvMsg implements grpc.ClientStream.
func (s *attendedStream) RecvMsg(m any) error {
	err := s.attend(func() error { return s.ClientStream.RecvMsg(m) })
	if err != nil {
		s.end()
	}
	return err
}
