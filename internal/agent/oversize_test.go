package agent

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestMessageThatATrackerWouldRefuseIsNotSent uses an address without a listener: oversized messages are refused
// before connecting.
func TestMessageThatATrackerWouldRefuseIsNotSent(t *testing.T) {
	conn, err := Dial("unix:" + t.TempDir() + "/none")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = tilthv1.NewJobServiceClient(conn).CancelJob(t.Context(), &tilthv1.CancelJobRequest{Reason: string(make([]byte, 40<<20))})
	want := "CancelJob takes messages of at most 16384 bytes, and this one has 41943045"
	if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	sent := lengthChecked{method: tilthv1.RecordService_ImportRecords_FullMethodName}.SendMsg(
		&tilthv1.ImportRecordsRequest{Record: &tilthv1.Record{Workload: make([]byte, 5<<20)}})
	if status.Code(sent) != codes.ResourceExhausted {
		t.Errorf("got %v", sent)
	}
}
