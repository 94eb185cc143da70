package wire

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Estimates of the memory for making an answer, in bytes.
const (
	smallAnswer   = 0 // not counted, or counted with the request; longer answers are counted once they are made
	jobAnswer     = jobBytes
	listAnswer    = 4 << 20 // a page of a listing, or a few devices
	keysAnswer    = MostRecordKeys * RecordKeyBytes
	recordAnswer  = 8 << 20        // the records of one look-up, which are sent one by one
	fileAnswer    = 3 * PieceBytes // one piece of a file being read, and two being sent
	releaseAnswer = 256 << 10      // digests of a release, read and sent, and their signature
	watchAnswer   = 48 << 10       // a message of events, and small unread ones
)

// answerBytes has the memory for making the answer of each method.
var answerBytes = map[string]int{
	tilthv1.JobService_SubmitJob_FullMethodName:        smallAnswer,
	tilthv1.JobService_GetJob_FullMethodName:           jobAnswer,
	tilthv1.JobService_ListJobs_FullMethodName:         listAnswer,
	tilthv1.JobService_CheckFarm_FullMethodName:        smallAnswer,
	tilthv1.JobService_WatchJob_FullMethodName:         watchAnswer,
	tilthv1.JobService_CancelJob_FullMethodName:        jobAnswer,
	tilthv1.JobService_DeleteJob_FullMethodName:        smallAnswer,
	tilthv1.JobService_PauseJob_FullMethodName:         jobAnswer,
	tilthv1.JobService_ResumeJob_FullMethodName:        jobAnswer,
	tilthv1.JobService_RetryDeadLetters_FullMethodName: jobAnswer,
	tilthv1.JobService_ListOwners_FullMethodName:       listAnswer,

	tilthv1.AgentService_Join_FullMethodName:        smallAnswer,
	tilthv1.AgentService_Heartbeat_FullMethodName:   smallAnswer,
	tilthv1.AgentService_LeaseWork_FullMethodName:   smallAnswer,
	tilthv1.AgentService_EndWait_FullMethodName:     smallAnswer,
	tilthv1.AgentService_ReturnLease_FullMethodName: smallAnswer,
	tilthv1.AgentService_Leave_FullMethodName:       smallAnswer,
	tilthv1.AgentService_ListAgents_FullMethodName:  listAnswer,
	tilthv1.AgentService_GetAgent_FullMethodName:    listAnswer,

	tilthv1.SearchService_ProposeBatch_FullMethodName:        smallAnswer,
	tilthv1.SearchService_FinishJob_FullMethodName:           smallAnswer,
	tilthv1.SearchService_ReportModel_FullMethodName:         smallAnswer,
	tilthv1.BuildService_ReportBuild_FullMethodName:          smallAnswer,
	tilthv1.MeasureService_ReportMeasurements_FullMethodName: smallAnswer,
	tilthv1.RunService_ReportRun_FullMethodName:              smallAnswer,

	tilthv1.DeviceService_ListDevices_FullMethodName:       listAnswer,
	tilthv1.DeviceService_GetDevice_FullMethodName:         listAnswer,
	tilthv1.DeviceService_CordonDevice_FullMethodName:      listAnswer,
	tilthv1.DeviceService_UncordonDevice_FullMethodName:    listAnswer,
	tilthv1.DeviceService_DrainDevice_FullMethodName:       smallAnswer,
	tilthv1.DeviceService_RecalibrateDevice_FullMethodName: listAnswer,
	tilthv1.DeviceService_ReportCalibration_FullMethodName: smallAnswer,

	tilthv1.RecordService_BestRecords_FullMethodName:   jobAnswer,
	tilthv1.RecordService_ListRecords_FullMethodName:   recordAnswer,
	tilthv1.RecordService_ImportRecords_FullMethodName: smallAnswer,

	tilthv1.RecordService_ListRecordGroups_FullMethodName:   listAnswer,
	tilthv1.RecordService_ListRecordKeys_FullMethodName:     keysAnswer,
	tilthv1.RecordService_FindLackingRecords_FullMethodName: keysAnswer,
	tilthv1.RecordService_GetRecords_FullMethodName:         recordAnswer,

	tilthv1.AdminService_BackupStore_FullMethodName:  fileAnswer,
	tilthv1.AdminService_PruneRecords_FullMethodName: smallAnswer,

	tilthv1.ArtifactService_StatArtifact_FullMethodName:     smallAnswer,
	tilthv1.ArtifactService_UploadArtifact_FullMethodName:   smallAnswer,
	tilthv1.ArtifactService_DownloadArtifact_FullMethodName: fileAnswer,

	tilthv1.ReleaseService_GetRelease_FullMethodName:      releaseAnswer,
	tilthv1.ReleaseService_DownloadRelease_FullMethodName: fileAnswer,

	healthv1.Health_Check_FullMethodName: smallAnswer,
	healthv1.Health_List_FullMethodName:  smallAnswer,
	healthv1.Health_Watch_FullMethodName: smallAnswer,

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      smallAnswer,
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: smallAnswer,
}

// AnswerBytes returns an estimate of the memory for making the answer of a method; 0 = the answer is small, or the
// call waits, and only the finished answer is counted.
func AnswerBytes(method string) int { return answerBytes[method] }
