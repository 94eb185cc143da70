package connlimit

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Check validates an encoded message before it is decoded; m is an empty message of its type.
type Check func(m proto.Message, encoded []byte) error

// incoming is a message to be received.
type incoming struct {
	message any
	// fault is why the message was not decoded; gRPC would replace the error.
	fault error
}

// codec checks messages before it decodes them, and discards unknown fields, whose size could not be bounded. It also
// encodes parcels.
type codec struct {
	encoding.CodecV2
	check Check
}

func newCodec(check Check) codec { return codec{encoding.GetCodecV2(protocodec.Name), check} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if p, is := v.(*trackedMessage); is {
		return p.encode()
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, is := v.(*incoming)
	if !is {
		return c.CodecV2.Unmarshal(data, v)
	}
	m, is := in.message.(proto.Message)
	if !is {
		return c.CodecV2.Unmarshal(data, in.message)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if c.check != nil {
		if in.fault = c.check(m, buf.ReadOnlyData()); in.fault != nil {
			return nil
		}
	}
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(buf.ReadOnlyData(), m)
}

// Registrar returns a registrar that applies the guard's limits to unary calls; an interceptor does that for streams.
func Registrar(s grpc.ServiceRegistrar) grpc.ServiceRegistrar { return registrar{s} }

type registrar struct{ grpc.ServiceRegistrar }

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	guarded := *desc
	guarded.Methods = nil
	for _, m := range desc.Methods {
		handle := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			s := callFrom(ctx)
			defer s.over()
			return handle(srv, ctx, func(m any) error { return s.receive(decode, m) }, intercept)
		}
		guarded.Methods = append(guarded.Methods, m)
	}
	r.ServiceRegistrar.RegisterService(&guarded, impl)
}
