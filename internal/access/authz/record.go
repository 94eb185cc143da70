package authz

import (
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxValueBytes bounds each value of a request in the audit log, in bytes.
const maxValueBytes = 256

// jobOf returns the ID of the job that a request concerns.
func jobOf(req any) string {
	if r, is := req.(interface{ GetJobId() string }); is {
		return r.GetJobId()
	}
	return ""
}

// sessionOf returns the session of a request, or of its lease.
func sessionOf(req any) string {
	switch r := req.(type) {
	case interface{ GetSession() string }:
		return r.GetSession()
	case interface{ GetLease() *tilthv1.LeaseToken }:
		return r.GetLease().GetSession()
	}
	return ""
}

// done writes a completed call to the audit log.
func (g *Gate) done(c *call, req, response any, err error) {
	if c.rule.GetAudit() == tilthv1.Audit_AUDIT_UNSPECIFIED {
		return
	}
	g.logSuppressed()
	e := g.entry(c, req, err)
	if err == nil {
		addScalars(e.What, response)
		if r, is := response.(interface{ GetJob() *tilthv1.Job }); is {
			e.What["job_id"] = r.GetJob().GetId()
		}
	}
	g.cfg.Audit.Add(e)
}

// refused writes a refused call to the audit log. Refusals per caller are limited, since callers could otherwise fill
// the log.
func (g *Gate) refused(c *call, req any, err error) {
	g.cfg.Refused(status.Code(err))
	if !g.written(c) {
		return
	}
	e := g.entry(c, req, err)
	g.cfg.Logger.Warn("call refused", "verb", e.Verb, "who", e.Who, "from", e.From, "result", e.Result, "message", e.Message)
	g.cfg.Audit.Add(e)
}

func (g *Gate) entry(c *call, req any, err error) access.AuditEntry {
	s := status.Convert(err)
	e := access.AuditEntry{
		Time: c.began.UTC(), Verb: c.verb, Who: c.caller.Name, Role: string(c.caller.Role), Proof: c.caller.Proof,
		From: c.caller.from, What: map[string]string{}, Result: s.Code().String(), Message: s.Message(),
		Seconds: g.cfg.Now().Sub(c.began).Round(time.Microsecond).Seconds(),
	}
	addScalars(e.What, req)
	if r, is := req.(*tilthv1.JoinRequest); is {
		c.agent = r.GetSpec().GetName()
	}
	if c.agent != "" {
		e.What["agent"] = short(c.agent)
	}
	return e
}

// addScalars adds the strings, numbers and times of a message to what, but no bytes and no lists. Session IDs are left
// out: they are secrets between an agent and the tracker.
func addScalars(what map[string]string, message any) {
	m, is := message.(proto.Message)
	if !is {
		return
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		if f.IsList() || f.IsMap() || f.Kind() == protoreflect.BytesKind || name == "session" {
			return true
		}
		switch f.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			if d, is := v.Message().Interface().(interface{ AsDuration() time.Duration }); is {
				what[name] = d.AsDuration().String()
			}
		case protoreflect.EnumKind:
			if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
				what[name] = string(d.Name())
			}
		default:
			what[name] = short(v.String())
		}
		return true
	})
}

func short(text string) string {
	if len(text) <= maxValueBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxValueBytes], "") + "..."
}
