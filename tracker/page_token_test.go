package tracker_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tilth-dev/tilth/tracker"
)

// TestPageTokenThatWasNotGivenOutIsRefused is a regression test: invalid page tokens returned an empty page. It
// covers every call with pages.
func TestPageTokenThatWasNotGivenOutIsRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	asked := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("tilth.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				token := method.Input().Fields().ByName("page_token")
				if token == nil {
					continue
				}
				for _, text := range []string{"garbage", "67617262616765", "zz", "0x1", "-1", "job-1"} {
					asked++
					request, answer := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
					request.Set(token, protoreflect.ValueOfString(text))
					if size := method.Input().Fields().ByName("page_size"); size != nil {
						request.Set(size, protoreflect.ValueOfUint32(1))
					}
					err := f.conn.Invoke(t.Context(), "/"+string(service.FullName())+"/"+string(method.Name()), request, answer)
					wantStatus(t, err, codes.InvalidArgument, "", "page_token")
				}
			}
		}
		return true
	})
	if asked == 0 {
		t.Error("no call has pages")
	}
}
