package authz

import (
	"google.golang.org/grpc"
)

// Stream is the stream server interceptor.
func (g *Gate) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c, is := ss.Context().Value(callKey{}).(*call)
	if !is {
		return notAdmitted(info.FullMethod)
	}
	if err := g.ready(c); err != nil {
		return err
	}
	s := &guarded{ServerStream: ss, gate: g, call: c, single: !info.IsClientStream}
	err := handle(srv, s)
	if s.refusal != nil {
		err = s.refusal
		g.refused(c, s.request, err)
		return err
	}
	g.done(c, s.request, s.answer, err)
	return err
}

// guarded is a stream that ends when its caller's credentials become invalid. They are checked at each message, so an
// idle stream may outlive them but transfers nothing.
type guarded struct {
	grpc.ServerStream
	gate *Gate
	call *call
	// single is set for streams with one request, whose ownership may have to be checked.
	single  bool
	request any
	// answer is the last message sent.
	answer  any
	refusal error
}

func (s *guarded) valid() error {
	if s.call.caller.valid == nil {
		return nil
	}
	s.refusal = s.call.caller.valid()
	return s.refusal
}

// RecvMsg implements grpc.ServerStream.
func (s *guarded) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if s.single {
		s.request = m
		if s.refusal = s.gate.checkOwnership(s.call, m); s.refusal != nil {
			return s.refusal
		}
	}
	return s.valid()
}

// SendMsg implements grpc.ServerStream.
func (s *guarded) SendMsg(m any) error {
	if err := s.valid(); err != nil {
		return err
	}
	s.answer = m
	return s.ServerStream.SendMsg(m)
}
