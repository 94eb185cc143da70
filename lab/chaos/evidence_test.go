package chaos

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// never is the end of an unanswered call, which may still take effect.
const never = math.MaxInt64

// call is a call by an agent or the client.
type call struct {
	agent      string
	life       int
	number     uint64
	method     string
	request    proto.Message
	answer     proto.Message // nil unless it was accepted
	begin, end int64         // monotonic clock; end is never if the outcome is unknown
	reason     string        // of the tracker's refusal
	// denied is the status code with which the tracker reported that a job does not exist or has ended, and deniedAt
	// the time. Empty means no such response.
	denied   string
	deniedAt int64
}

// accepted reports whether the tracker acknowledged the call.
func (c *call) accepted() bool { return c.answer != nil }

// unknown reports whether the call may or may not have taken effect.
func (c *call) unknown() bool { return c.end == never }

func (c *call) String() string {
	return fmt.Sprintf("%s (life %d, call %d)", c.agent, c.life, c.number)
}

// readCalls returns the calls in all journals of a folder, in order of their start.
func readCalls(dir string) (calls []*call, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		entries, err := readJournal(path)
		if err != nil {
			return nil, err
		}
		found, err := pair(entries)
		if err != nil {
			return nil, fmt.Errorf("journal %s: %w", path, err)
		}
		calls = append(calls, found...)
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.begin, b.begin) })
	return calls, nil
}

// pair combines an agent's entries into calls.
func pair(entries []entry) (calls []*call, err error) {
	type key struct {
		life   int
		number uint64
	}
	open := map[key]*call{}
	for _, e := range entries {
		if e.Request != nil {
			c := &call{agent: e.Agent, life: e.Life, number: e.Call, method: e.Method, begin: e.At, end: never}
			if c.request, err = decode(e.Method, e.Request, protoreflect.MethodDescriptor.Input); err != nil {
				return nil, err
			}
			open[key{e.Life, e.Call}] = c
			calls = append(calls, c)
			continue
		}
		c := open[key{e.Life, e.Call}]
		switch {
		case c == nil:
			return nil, fmt.Errorf("life %d, call %d: is answered, but was not made", e.Life, e.Call)
		case e.Code == "":
			c.end = e.At
			if c.answer, err = decode(e.Method, e.Answer, protoreflect.MethodDescriptor.Output); err != nil {
				return nil, err
			}
		case refused(e):
			c.end, c.reason = e.At, e.Reason
		case e.Reason == "" && denials[e.Code] != "":
			c.denied, c.deniedAt = e.Code, e.At
		}
	}
	return calls, nil
}

// refused reports whether a failed call certainly had no effect, because the tracker refused it.
func refused(e entry) bool {
	switch e.Reason {
	case wire.ReasonStaleLease, wire.ReasonVoidSession, wire.ReasonMissingArtifact, wire.ReasonStandby:
		return true
	}
	return false
}

// decode decodes a message of a method.
func decode(method string, text []byte, which func(protoreflect.MethodDescriptor) protoreflect.MessageDescriptor) (proto.Message, error) {
	m, err := methodOf(method)
	if err != nil {
		return nil, err
	}
	message := newMessage(which(m))
	return message, protojson.Unmarshal(text, message)
}

// methodOf returns the method of a name such as "/tilth.v1.AgentService/Join".
func methodOf(name string) (protoreflect.MethodDescriptor, error) {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")))
	if err != nil {
		return nil, err
	}
	m, is := d.(protoreflect.MethodDescriptor)
	if !is {
		return nil, fmt.Errorf("%s is not a method", name)
	}
	return m, nil
}

func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err) // generated with its descriptor
	}
	return kind.New().Interface()
}

// leased is a delivered lease.
type leased struct {
	*call
	*tilthv1.LeaseWorkResponse
}

// candidates returns the candidates of a batch's lease.
func (l leased) candidates() []*tilthv1.Candidate {
	if b := l.GetBuild(); b != nil {
		return b.GetCandidates()
	}
	return l.GetMeasure().GetCandidates()
}

// leases returns the delivered leases by token.
func leases(calls []*call) map[string]leased {
	out := map[string]leased{}
	for _, c := range calls {
		if answer, is := c.answer.(*tilthv1.LeaseWorkResponse); is && answer.GetLease() != nil {
			out[tokenKey(answer.GetLease())] = leased{c, answer}
		}
	}
	return out
}

func tokenKey(t *tilthv1.LeaseToken) string {
	return fmt.Sprintf("%s %d %s", t.GetSubject(), t.GetAttempt(), t.GetSession())
}
