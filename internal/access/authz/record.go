package authz

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
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

// Bounds on the refusals logged within a window: per host of unauthenticated callers, and per authenticated caller.
const (
	refusalWindow                   = time.Minute
	strangerRefusals, strangerHosts = 20, 256
	knownRefusals, knownCallers     = 60, 1024
)

// refusalLimiter limits the logged refusals per caller and window.
type refusalLimiter struct {
	perKey, keys int
	whose        string

	mu         sync.Mutex
	began      time.Time
	counts     map[string]int
	suppressed int
}

// count counts a refusal. written reports whether to log it; suppressed is the number of unlogged refusals of the
// previous window, returned once.
func (s *refusalLimiter) count(key string, now time.Time) (written bool, suppressed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suppressed = s.rollWindow(now)
	_, seen := s.counts[key]
	if s.counts[key] == s.perKey || !seen && len(s.counts) == s.keys {
		s.suppressed++
		return false, suppressed
	}
	s.counts[key]++
	return true, suppressed
}

// over returns the number of unlogged refusals of a finished window, once.
func (s *refusalLimiter) over(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollWindow(now)
}

// rollWindow starts the next window if the current one is over. The lock must be held.
func (s *refusalLimiter) rollWindow(now time.Time) (suppressed int) {
	if s.counts == nil || now.Sub(s.began) >= refusalWindow {
		suppressed = s.suppressed
		s.began, s.counts, s.suppressed = now, map[string]int{}, 0
	}
	return suppressed
}

// entry returns the audit entry about suppressed refusals.
func (s *refusalLimiter) entry(suppressed int, now time.Time) access.AuditEntry {
	return access.AuditEntry{
		Time: now.UTC(), Verb: "refusals", Result: codes.ResourceExhausted.String(),
		Message: fmt.Sprintf("%d refusals %s were not written down", suppressed, s.whose),
	}
}

// written reports whether to log a refusal, and logs the number of refusals suppressed before.
func (g *Gate) written(c *call) bool {
	s, key := &g.known, c.caller.Name
	if !c.caller.proved {
		s, key = &g.strangers, portless(c.caller.from)
	}
	now := g.cfg.Now()
	is, suppressed := s.count(key, now)
	if suppressed > 0 {
		g.cfg.Audit.Add(s.entry(suppressed, now))
	}
	return is
}

// logSuppressed logs the number of suppressed refusals once their window is over, if no refusal has done so since.
func (g *Gate) logSuppressed() {
	now := g.cfg.Now()
	for _, s := range []*refusalLimiter{&g.strangers, &g.known} {
		if n := s.over(now); n > 0 {
			g.cfg.Audit.Add(s.entry(n, now))
		}
	}
}

func portless(from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}
