package wire

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestFailedCallIsExplainedByItsCause is a regression test: unknown host names were blamed on TLS, and refusals of
// agents were explained in gRPC's terms.
func TestFailedCallIsExplainedByItsCause(t *testing.T) {
	for message, want := range map[string]string{
		"last resolver error: produced zero addresses":                                                                    "its host name is not known",
		"name resolver error: produced zero addresses":                                                                    "its host name is not known",
		"dns: A record lookup error: lookup x.test: no such host":                                                         "its host name is not known",
		`connection error: desc = "transport: Error while dialing: dial tcp: x"`:                                          "start it with 'tilth tracker'",
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like TLS"`: "by TLS (first record",
		"connection closed before server preface received":                                                                "it closed the connection",
	} {
		got := Explain("x.test:9190", "list jobs", status.Error(codes.Unavailable, message)).Error()
		if !strings.Contains(got, want) || strings.Contains(got, "rpc error") {
			t.Errorf("%s\nbecomes %s", message, got)
		}
	}
	denied := status.Error(codes.PermissionDenied, "c has the role client")
	if got := Explain("x", "join", denied); got.Error() != "join: c has the role client" || status.Code(got) != codes.PermissionDenied {
		t.Errorf("a refusal becomes %v", got)
	}
	if got := ErrorText(denied); got != "c has the role client" {
		t.Errorf("its words are %q", got)
	}
}
