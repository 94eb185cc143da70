// This file defines the maximum sizes of requests to a tracker: of every string, list and map of every message, and
// of each method's message. Checker checks a message before it is decoded. A second table estimates the memory of
// each method's response.

package wire

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// bound limits a field: the number of items of a list or map, and the bytes of each string or byte string.
type bound struct{ items, bytes int }

// Sizes shared by many fields, in bytes.
const (
	idBytes      = 128     // of jobs, batches, sessions, digests; the tracker's own are shorter
	nameBytes    = 256     // names chosen by users
	keyBytes     = 4 << 10 // composite names, such as a target's fingerprint
	textBytes    = TextBytes
	messageBytes = FailureBytes
	noteBytes    = 1 << 10  // reasons, of which a device's history keeps many
	descBytes    = 64 << 10 // descriptions of machines
	jobBytes     = 16 << 20 // a job with the longest specification
)

// batchItems bounds the candidates, outcomes or measurements of a batch.
const batchItems = 1024

// requestBytes bounds the messages of each method. Calls that ten thousand agents make have small bounds.
var requestBytes = map[string]int{
	tilthv1.JobService_SubmitJob_FullMethodName:        jobBytes,
	tilthv1.JobService_GetJob_FullMethodName:           4 << 10,
	tilthv1.JobService_ListJobs_FullMethodName:         16 << 10,
	tilthv1.JobService_CheckFarm_FullMethodName:        16 << 10,
	tilthv1.JobService_WatchJob_FullMethodName:         4 << 10,
	tilthv1.JobService_CancelJob_FullMethodName:        16 << 10,
	tilthv1.JobService_DeleteJob_FullMethodName:        4 << 10,
	tilthv1.JobService_PauseJob_FullMethodName:         16 << 10,
	tilthv1.JobService_ResumeJob_FullMethodName:        16 << 10,
	tilthv1.JobService_RetryDeadLetters_FullMethodName: 256 << 10,
	tilthv1.JobService_ListOwners_FullMethodName:       16 << 10,

	tilthv1.AgentService_Join_FullMethodName:        1 << 20,
	tilthv1.AgentService_Heartbeat_FullMethodName:   1 << 20,
	tilthv1.AgentService_LeaseWork_FullMethodName:   4 << 10,
	tilthv1.AgentService_EndWait_FullMethodName:     4 << 10,
	tilthv1.AgentService_ReturnLease_FullMethodName: 4 << 10,
	tilthv1.AgentService_Leave_FullMethodName:       4 << 10,
	tilthv1.AgentService_ListAgents_FullMethodName:  16 << 10,
	tilthv1.AgentService_GetAgent_FullMethodName:    16 << 10,

	tilthv1.SearchService_ProposeBatch_FullMethodName:        16 << 20,
	tilthv1.SearchService_FinishJob_FullMethodName:           16 << 10,
	tilthv1.SearchService_ReportModel_FullMethodName:         jobBytes,
	tilthv1.BuildService_ReportBuild_FullMethodName:          8 << 20,
	tilthv1.MeasureService_ReportMeasurements_FullMethodName: 16 << 20,
	tilthv1.RunService_ReportRun_FullMethodName:              8 << 20,

	tilthv1.DeviceService_ListDevices_FullMethodName:       16 << 10,
	tilthv1.DeviceService_GetDevice_FullMethodName:         16 << 10,
	tilthv1.DeviceService_CordonDevice_FullMethodName:      16 << 10,
	tilthv1.DeviceService_UncordonDevice_FullMethodName:    16 << 10,
	tilthv1.DeviceService_DrainDevice_FullMethodName:       16 << 10,
	tilthv1.DeviceService_RecalibrateDevice_FullMethodName: 16 << 10,
	tilthv1.DeviceService_ReportCalibration_FullMethodName: 256 << 10,

	tilthv1.RecordService_BestRecords_FullMethodName:   1 << 20,
	tilthv1.RecordService_ListRecords_FullMethodName:   16 << 10,
	tilthv1.RecordService_ImportRecords_FullMethodName: 4 << 20,

	tilthv1.RecordService_ListRecordGroups_FullMethodName:   1 << 20,
	tilthv1.RecordService_ListRecordKeys_FullMethodName:     16 << 10,
	tilthv1.RecordService_FindLackingRecords_FullMethodName: 64 << 10,
	tilthv1.RecordService_GetRecords_FullMethodName:         64 << 10,

	tilthv1.AdminService_BackupStore_FullMethodName:  4 << 10,
	tilthv1.AdminService_PruneRecords_FullMethodName: 16 << 10,

	tilthv1.ArtifactService_StatArtifact_FullMethodName:     4 << 10,
	tilthv1.ArtifactService_UploadArtifact_FullMethodName:   2 << 20,
	tilthv1.ArtifactService_DownloadArtifact_FullMethodName: 4 << 10,

	tilthv1.ReleaseService_GetRelease_FullMethodName:      4 << 10,
	tilthv1.ReleaseService_DownloadRelease_FullMethodName: 4 << 10,

	healthv1.Health_Check_FullMethodName: 4 << 10,
	healthv1.Health_List_FullMethodName:  4 << 10,
	healthv1.Health_Watch_FullMethodName: 4 << 10,

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      4 << 10,
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: 4 << 10,
}

// RequestBytes returns the maximum length of a method's message; 0 for unknown methods.
func RequestBytes(method string) int { return requestBytes[method] }

// fields bounds every variable-length field of every message that a request may contain. A test finds missing entries.
var fields = map[protoreflect.FullName]bound{
	"tilth.v1.AgentSpec.name":              {bytes: nameBytes},
	"tilth.v1.AgentSpec.host":              {bytes: nameBytes},
	"tilth.v1.AgentSpec.version":           {bytes: nameBytes},
	"tilth.v1.AgentSpec.toolchains":        {MostOffers, nameBytes},
	"tilth.v1.AgentSpec.device_classes":    {items: MostOffers},
	"tilth.v1.AgentSpec.labels":            {items: 64},
	"tilth.v1.AgentSpec.LabelsEntry.key":   {bytes: nameBytes},
	"tilth.v1.AgentSpec.LabelsEntry.value": {bytes: textBytes},
	"tilth.v1.AgentSpec.tuners":            {MostOffers, nameBytes},
	"tilth.v1.AgentSpec.sandbox":           {items: 64},
	"tilth.v1.AgentSpec.capabilities":      {64, nameBytes},
	"tilth.v1.DeviceClass.name":            {bytes: nameBytes},
	"tilth.v1.DeviceClass.descriptor":      {bytes: descBytes},
	"tilth.v1.DeviceClass.machine":         {bytes: descBytes},
	"tilth.v1.SandboxLayer.name":           {bytes: nameBytes},
	"tilth.v1.SandboxLayer.how":            {bytes: textBytes},
	"tilth.v1.SandboxLayer.missing":        {bytes: textBytes},
	"tilth.v1.SandboxLayer.substitute":     {bytes: textBytes},

	"tilth.v1.LeaseToken.session":           {bytes: idBytes},
	"tilth.v1.LeaseToken.subject":           {bytes: idBytes},
	"tilth.v1.LeaseToken.life":              {bytes: idBytes},
	"tilth.v1.HeartbeatRequest.session":     {bytes: idBytes},
	"tilth.v1.HeartbeatRequest.leases":      {items: 4096},
	"tilth.v1.LeaseWorkRequest.session":     {bytes: idBytes},
	"tilth.v1.LeaseWorkRequest.name":        {bytes: idBytes},
	"tilth.v1.EndWaitRequest.session":       {bytes: idBytes},
	"tilth.v1.EndWaitRequest.name":          {bytes: idBytes},
	"tilth.v1.LeaveRequest.session":         {bytes: idBytes},
	"tilth.v1.ListAgentsRequest.page_token": {bytes: keyBytes},
	"tilth.v1.GetAgentRequest.name":         {bytes: nameBytes},

	"tilth.v1.ProposeBatchRequest.candidates":          {items: batchItems},
	"tilth.v1.ProposeBatchRequest.remeasured":          {bytes: noteBytes},
	"tilth.v1.ProposeBatchRequest.predicted_seconds":   {items: batchItems},
	"tilth.v1.FinishJobRequest.reason":                 {bytes: textBytes},
	"tilth.v1.ReportModelRequest.tasks":                {items: 4096},
	"tilth.v1.ReportModelRequest.failure":              {bytes: textBytes},
	"tilth.v1.ReportModelRequest.infra_message":        {bytes: textBytes},
	"tilth.v1.ReportBuildRequest.outcomes":             {items: batchItems},
	"tilth.v1.ReportBuildRequest.artifacts":            {items: batchItems},
	"tilth.v1.ReportBuildRequest.infra_message":        {bytes: textBytes},
	"tilth.v1.BuildOutcome.candidate":                  {bytes: idBytes},
	"tilth.v1.BuildOutcome.message":                    {bytes: messageBytes},
	"tilth.v1.ReportMeasurementsRequest.measurements":  {items: batchItems},
	"tilth.v1.ReportMeasurementsRequest.infra_message": {bytes: textBytes},
	"tilth.v1.Candidate.digest":                        {bytes: idBytes},
	"tilth.v1.Candidate.trace":                         {bytes: 256 << 10},
	"tilth.v1.Candidate.origin":                        {bytes: 256 << 10},
	"tilth.v1.Candidate.numerics":                      {bytes: idBytes},
	"tilth.v1.Measurement.message":                     {bytes: messageBytes},
	"tilth.v1.Measurement.samples_seconds":             {items: 16 << 10},
	"tilth.v1.Measurement.device":                      {bytes: nameBytes},
	"tilth.v1.Measurement.remeasured":                  {bytes: noteBytes},
	"tilth.v1.Measurement.suspected":                   {bytes: noteBytes},

	"tilth.v1.ReportRunRequest.failure":       {bytes: textBytes},
	"tilth.v1.ReportRunRequest.infra_message": {bytes: textBytes},
	"tilth.v1.RunResult.device":               {bytes: nameBytes},
	"tilth.v1.RunResult.packages":             {items: 16},
	"tilth.v1.PackageResult.samples_seconds":  {items: 16 << 10},
	"tilth.v1.PackageResult.profile":          {bytes: 8 << 20},
	"tilth.v1.PackageResult.manifest":         {bytes: 8 << 20},

	"tilth.v1.SubmitJobRequest.request_id":       {bytes: nameBytes},
	"tilth.v1.JobSpec.name":                      {bytes: nameBytes},
	"tilth.v1.JobSpec.owner":                     {bytes: nameBytes},
	"tilth.v1.JobSpec.tuner":                     {bytes: nameBytes},
	"tilth.v1.JobSpec.numerics":                  {bytes: idBytes},
	"tilth.v1.JobSpec.tasks":                     {items: 4096},
	"tilth.v1.JobSpec.kernels":                   {MostKernels, KernelBytes},
	"tilth.v1.TaskSpec.name":                     {bytes: keyBytes},
	"tilth.v1.TaskSpec.workload":                 {bytes: 1 << 20},
	"tilth.v1.TaskSpec.workload_digest":          {bytes: idBytes},
	"tilth.v1.TaskSpec.default_digest":           {bytes: idBytes},
	"tilth.v1.TaskSpec.seeds":                    {MostSeeds, SeedBytes},
	"tilth.v1.TargetSpec.fingerprint":            {bytes: keyBytes},
	"tilth.v1.TargetSpec.descriptor":             {bytes: descBytes},
	"tilth.v1.TargetSpec.toolchain":              {bytes: nameBytes},
	"tilth.v1.TargetSpec.device_class":           {bytes: nameBytes},
	"tilth.v1.TargetSpec.machine":                {bytes: descBytes},
	"tilth.v1.ModelSpec.shapes":                  {items: 256},
	"tilth.v1.ModelSpec.ShapesEntry.key":         {bytes: nameBytes},
	"tilth.v1.ModelSpec.open":                    {items: 16},
	"tilth.v1.ModelSpec.OpenEntry.key":           {bytes: nameBytes},
	"tilth.v1.ModelSpec.storage":                 {bytes: idBytes},
	"tilth.v1.ModelSpec.from":                    {256, nameBytes},
	"tilth.v1.ModelSpec.to":                      {256, nameBytes},
	"tilth.v1.ModelSpec.tasks":                   {bytes: keyBytes},
	"tilth.v1.ModelSpec.others":                  {items: 63},
	"tilth.v1.ModelSpec.task_weights":            {items: 4096},
	"tilth.v1.ModelSpec.seeds":                   {items: 16},
	"tilth.v1.OtherModel.name":                   {bytes: nameBytes},
	"tilth.v1.OtherModel.shapes":                 {items: 256},
	"tilth.v1.OtherModel.ShapesEntry.key":        {bytes: nameBytes},
	"tilth.v1.OtherModel.open":                   {items: 16},
	"tilth.v1.OtherModel.OpenEntry.key":          {bytes: nameBytes},
	"tilth.v1.OtherModel.from":                   {256, nameBytes},
	"tilth.v1.OtherModel.to":                     {256, nameBytes},
	"tilth.v1.TaskWeight.tasks":                  {bytes: keyBytes},
	"tilth.v1.Extents.extents":                   {items: 64},
	"tilth.v1.ExtentBounds.caps":                 {items: 256},
	"tilth.v1.ExtentBounds.frequencies":          {items: 16 << 10},
	"tilth.v1.RunSpec.packages":                  {items: 16},
	"tilth.v1.RunSpec.device":                    {bytes: nameBytes},
	"tilth.v1.RunPackage.name":                   {bytes: nameBytes},
	"tilth.v1.ArtifactRef.role":                  {bytes: nameBytes},
	"tilth.v1.ArtifactRef.digest":                {bytes: idBytes},
	"tilth.v1.GetJobRequest.job_id":              {bytes: idBytes},
	"tilth.v1.WatchJobRequest.job_id":            {bytes: idBytes},
	"tilth.v1.CancelJobRequest.job_id":           {bytes: idBytes},
	"tilth.v1.CancelJobRequest.reason":           {bytes: textBytes},
	"tilth.v1.DeleteJobRequest.job_id":           {bytes: idBytes},
	"tilth.v1.PauseJobRequest.job_id":            {bytes: idBytes},
	"tilth.v1.PauseJobRequest.reason":            {bytes: textBytes},
	"tilth.v1.ResumeJobRequest.job_id":           {bytes: idBytes},
	"tilth.v1.ResumeJobRequest.reason":           {bytes: textBytes},
	"tilth.v1.RetryDeadLettersRequest.job_id":    {bytes: idBytes},
	"tilth.v1.RetryDeadLettersRequest.batch_ids": {batchItems, idBytes},
	"tilth.v1.ListJobsRequest.states":            {items: 64},
	"tilth.v1.ListJobsRequest.page_token":        {bytes: keyBytes},
	"tilth.v1.CheckFarmRequest.device_class":     {bytes: nameBytes},
	"tilth.v1.CheckFarmRequest.toolchain":        {bytes: nameBytes},
	"tilth.v1.CheckFarmRequest.tuner":            {bytes: nameBytes},
	"tilth.v1.CheckFarmRequest.device":           {bytes: nameBytes},
	"tilth.v1.ListOwnersRequest.page_token":      {bytes: keyBytes},

	"tilth.v1.ListDevicesRequest.page_token":     {bytes: keyBytes},
	"tilth.v1.GetDeviceRequest.name":             {bytes: nameBytes},
	"tilth.v1.CordonDeviceRequest.name":          {bytes: nameBytes},
	"tilth.v1.CordonDeviceRequest.by":            {bytes: nameBytes},
	"tilth.v1.CordonDeviceRequest.reason":        {bytes: noteBytes},
	"tilth.v1.UncordonDeviceRequest.name":        {bytes: nameBytes},
	"tilth.v1.UncordonDeviceRequest.by":          {bytes: nameBytes},
	"tilth.v1.UncordonDeviceRequest.reason":      {bytes: noteBytes},
	"tilth.v1.DrainDeviceRequest.name":           {bytes: nameBytes},
	"tilth.v1.DrainDeviceRequest.by":             {bytes: nameBytes},
	"tilth.v1.DrainDeviceRequest.reason":         {bytes: noteBytes},
	"tilth.v1.RecalibrateDeviceRequest.name":     {bytes: nameBytes},
	"tilth.v1.RecalibrateDeviceRequest.by":       {bytes: nameBytes},
	"tilth.v1.RecalibrateDeviceRequest.reason":   {bytes: noteBytes},
	"tilth.v1.ReportCalibrationRequest.session":  {bytes: idBytes},
	"tilth.v1.CalibrationReport.kernels":         {bytes: nameBytes},
	"tilth.v1.CalibrationReport.compute_seconds": {items: 1000},
	"tilth.v1.CalibrationReport.memory_seconds":  {items: 1000},
	"tilth.v1.Surroundings.temperatures":         {items: 128},
	"tilth.v1.Surroundings.clocks":               {items: 128},
	"tilth.v1.Surroundings.throttling":           {items: 128},
	"tilth.v1.Surroundings.impairments":          {items: 8, bytes: noteBytes},
	"tilth.v1.Surroundings.memory_errors":        {items: 128},
	"tilth.v1.Surroundings.power":                {items: 16},
	"tilth.v1.Power.meter":                       {bytes: nameBytes},
	"tilth.v1.MemoryErrors.memory":               {bytes: 64},
	"tilth.v1.Temperature.sensor":                {bytes: 64},
	"tilth.v1.Clock.domain":                      {bytes: 64},
	"tilth.v1.Clock.governor":                    {bytes: 64},
	"tilth.v1.Throttling.source":                 {bytes: 64},

	"tilth.v1.BestRecordsRequest.target":                 {bytes: keyBytes},
	"tilth.v1.BestRecordsRequest.workload_digests":       {8192, idBytes},
	"tilth.v1.BestRecordsRequest.numerics":               {bytes: idBytes},
	"tilth.v1.BestRecordsRequest.page_token":             {bytes: keyBytes},
	"tilth.v1.ListRecordsRequest.target":                 {bytes: keyBytes},
	"tilth.v1.ListRecordsRequest.workload_digest":        {bytes: idBytes},
	"tilth.v1.ListRecordsRequest.job_id":                 {bytes: idBytes},
	"tilth.v1.ListRecordGroupsRequest.target":            {bytes: keyBytes},
	"tilth.v1.ListRecordGroupsRequest.workload_digests":  {8192, idBytes},
	"tilth.v1.ListRecordGroupsRequest.page_token":        {bytes: 2*keyBytes + 2*idBytes},
	"tilth.v1.ListRecordKeysRequest.target":              {bytes: keyBytes},
	"tilth.v1.ListRecordKeysRequest.workload_digest":     {bytes: idBytes},
	"tilth.v1.ListRecordKeysRequest.from":                {bytes: RecordKeyBytes},
	"tilth.v1.FindLackingRecordsRequest.target":          {bytes: keyBytes},
	"tilth.v1.FindLackingRecordsRequest.workload_digest": {bytes: idBytes},
	"tilth.v1.FindLackingRecordsRequest.keys":            {bytes: MostRecordKeys * RecordKeyBytes},
	"tilth.v1.GetRecordsRequest.target":                  {bytes: keyBytes},
	"tilth.v1.GetRecordsRequest.workload_digest":         {bytes: idBytes},
	"tilth.v1.GetRecordsRequest.keys":                    {bytes: MostRecordKeys * RecordKeyBytes},
	"tilth.v1.Record.workload_digest":                    {bytes: idBytes},
	"tilth.v1.Record.workload":                           {bytes: 1 << 20},
	"tilth.v1.Record.target":                             {bytes: keyBytes},
	"tilth.v1.Record.job_id":                             {bytes: idBytes},
	"tilth.v1.PruneRecordsRequest.target":                {bytes: keyBytes},
	"tilth.v1.PruneRecordsRequest.workload_digest":       {bytes: idBytes},

	"tilth.v1.StatArtifactRequest.digest":     {bytes: idBytes},
	"tilth.v1.UploadArtifactRequest.digest":   {bytes: idBytes},
	"tilth.v1.UploadArtifactRequest.data":     {bytes: 1 << 20},
	"tilth.v1.DownloadArtifactRequest.digest": {bytes: idBytes},
	"tilth.v1.DownloadReleaseRequest.name":    {bytes: nameBytes},

	"grpc.health.v1.HealthCheckRequest.service": {bytes: nameBytes},

	"grpc.reflection.v1.ExtensionRequest.containing_type":                           {bytes: nameBytes},
	"grpc.reflection.v1.ServerReflectionRequest.host":                               {bytes: nameBytes},
	"grpc.reflection.v1.ServerReflectionRequest.file_by_filename":                   {bytes: nameBytes},
	"grpc.reflection.v1.ServerReflectionRequest.file_containing_symbol":             {bytes: nameBytes},
	"grpc.reflection.v1.ServerReflectionRequest.all_extension_numbers_of_type":      {bytes: nameBytes},
	"grpc.reflection.v1.ServerReflectionRequest.list_services":                      {bytes: nameBytes},
	"grpc.reflection.v1alpha.ExtensionRequest.containing_type":                      {bytes: nameBytes},
	"grpc.reflection.v1alpha.ServerReflectionRequest.host":                          {bytes: nameBytes},
	"grpc.reflection.v1alpha.ServerReflectionRequest.file_by_filename":              {bytes: nameBytes},
	"grpc.reflection.v1alpha.ServerReflectionRequest.file_containing_symbol":        {bytes: nameBytes},
	"grpc.reflection.v1alpha.ServerReflectionRequest.all_extension_numbers_of_type": {bytes: nameBytes},
	"grpc.reflection.v1alpha.ServerReflectionRequest.list_services":                 {bytes: nameBytes},
}
