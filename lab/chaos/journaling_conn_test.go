package chaos

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// journalingConn is a connection that logs its calls before they are made and when they are answered. It does not log
// streams or heartbeats, which change no records.
type journalingConn struct {
	grpc.ClientConnInterface
	journal *journal
}

// Invoke implements grpc.ClientConnInterface.
func (w *journalingConn) Invoke(ctx context.Context, method string, request, answer any, opts ...grpc.CallOption) error {
	if method == tilthv1.AgentService_Heartbeat_FullMethodName {
		return w.ClientConnInterface.Invoke(ctx, method, request, answer, opts...)
	}
	e := entry{Call: w.journal.next(), Method: method}
	var err error
	if e.Request, err = protojson.Marshal(request.(proto.Message)); err != nil {
		return err
	}
	w.note(e)
	e.Request = nil
	err = w.ClientConnInterface.Invoke(ctx, method, request, answer, opts...)
	if err != nil {
		e.Code, e.Reason = status.Code(err).String(), wire.Reason(err)
	} else if e.Answer, err = protojson.Marshal(answer.(proto.Message)); err != nil {
		return err
	}
	w.note(e)
	return err
}

// note ends the process if the journal cannot be written.
func (w *journalingConn) note(e entry) {
	if err := w.journal.write(e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
