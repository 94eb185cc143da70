package rpc

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

var capital = regexp.MustCompile(`\B[A-Z]`)

// TestEachCallHasAFileOfItsOwn checks that each call is in a file of its name.
func TestEachCallHasAFileOfItsOwn(t *testing.T) {
	for _, service := range []grpc.ServiceDesc{
		tilthv1.JobService_ServiceDesc, tilthv1.AgentService_ServiceDesc, tilthv1.SearchService_ServiceDesc,
		tilthv1.BuildService_ServiceDesc, tilthv1.MeasureService_ServiceDesc, tilthv1.RecordService_ServiceDesc,
		tilthv1.DeviceService_ServiceDesc, tilthv1.RunService_ServiceDesc, tilthv1.AdminService_ServiceDesc,
	} {
		var calls []string
		for _, m := range service.Methods {
			calls = append(calls, m.MethodName)
		}
		for _, s := range service.Streams {
			calls = append(calls, s.StreamName)
		}
		for _, call := range calls {
			file := strings.ToLower(capital.ReplaceAllString(call, "_$0")) + ".go"
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), "func (s *Services) "+call+"(") {
				t.Errorf("%s: it is not in %s: %v", call, file, err)
			}
		}
	}
}
