package chaos

import (
	"errors"
	"io"
	"net"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tilth-dev/tilth/internal/wire"
)

// relay forwards the calls of a real agent to the tracker and keeps a journal for it: the agent's requests and the
// tracker's responses, whether or not they arrived. To the agent it is the tracker, and it forwards the agent's
// credentials.
type relay struct {
	server *grpc.Server
	conn   *grpc.ClientConn
	*journalingConn
	listener net.Listener
	served   chan struct{}
}

// newRelay returns a relay from an agent to the tracker at an address. secrets is the farm's folder of secrets.
func newRelay(agent, tracker, journals, secrets string) (*relay, error) {
	side, err := encrypted(secrets)
	if err != nil {
		return nil, err
	}
	options, err := asNobody(secrets)
	if err != nil {
		return nil, err
	}
	conn, err := dial(tracker, options...)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(filepath.Join(journals, agent+".journal"), agent, 0)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	r := &relay{conn: conn, journalingConn: &journalingConn{conn, j}, served: make(chan struct{})}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, conn.Close(), j.close())
	}
	r.server = grpc.NewServer(side, grpc.UnknownServiceHandler(r.pass), grpc.MaxRecvMsgSize(wire.MaxMessageBytes), grpc.MaxSendMsgSize(wire.MaxMessageBytes))
	go func() {
		defer close(r.served)
		_ = r.server.Serve(r.listener) // until closed
	}()
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) close() {
	r.server.Stop()
	<-r.served
	r.conn.Close()
	r.journal.close()
}

// pass forwards one call.
func (r *relay) pass(_ any, in grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(in)
	method, err := methodOf(name)
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	arrived, _ := metadata.FromIncomingContext(in.Context())
	ctx := metadata.NewOutgoingContext(in.Context(), metadata.MD{"authorization": arrived.Get("authorization")})
	if !method.IsStreamingClient() && !method.IsStreamingServer() {
		request, answer := newMessage(method.Input()), newMessage(method.Output())
		if err := in.RecvMsg(request); err != nil {
			return err
		}
		if err := r.Invoke(ctx, name, request, answer); err != nil {
			return err
		}
		return in.SendMsg(answer)
	}
	out, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, name)
	if err != nil {
		return err
	}
	go func() {
		for passMessage(in, out, method.Input()) == nil {
		}
		_ = out.CloseSend() // the response reports the result
	}()
	for {
		if err := passMessage(out, in, method.Output()); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// passMessage forwards the next message of a stream.
func passMessage(from, to interface {
	RecvMsg(any) error
	SendMsg(any) error
}, kind protoreflect.MessageDescriptor) error {
	m := newMessage(kind)
	if err := from.RecvMsg(m); err != nil {
		return err
	}
	return to.SendMsg(m)
}
