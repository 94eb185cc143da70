package rpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestEachCallHasAMethod checks that no call is left to the embedded servers, which refuse it.
func TestEachCallHasAMethod(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
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
			if !strings.Contains(source.String(), "\nfunc (s *Services) "+call+"(") {
				t.Errorf("%s has no implementation", call)
			}
		}
	}
}
