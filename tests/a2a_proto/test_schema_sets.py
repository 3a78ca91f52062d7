"""The compiled descriptors against rows written down from the upstream descriptors, not from the
`.proto` files."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from a2a_proto import SCHEMA_SETS, message_class, pool

ROWS = """
0.3       SendMessageRequest 1 request Message - message
0.3       SendMessageRequest 2 configuration SendMessageConfiguration - configuration
0.3       SendMessageRequest 3 metadata google.protobuf.Struct - metadata
0.3       SendMessageConfiguration 2 push_notification PushNotificationConfig - pushNotification
0.3       SendMessageConfiguration 3 history_length int32 - historyLength
0.3       SendMessageConfiguration 4 blocking bool - blocking
0.3       TaskStatus 2 update Message - message
0.3       Part 2 file FilePart part file
0.3       Part 3 data DataPart part data
0.3       Part 4 metadata google.protobuf.Struct - metadata
0.3       FilePart 2 file_with_bytes bytes file fileWithBytes
0.3       FilePart 4 name string - name
0.3       DataPart 1 data google.protobuf.Struct - data
0.3       Message 5 content Part repeated content
0.3       Artifact 3 name string - name
0.3       Artifact 5 parts Part repeated parts
0.3       TaskStatusUpdateEvent 4 final bool - final
0.3       TaskStatusUpdateEvent 5 metadata google.protobuf.Struct - metadata
0.3       TaskArtifactUpdateEvent 5 last_chunk bool - lastChunk
0.3       AuthenticationInfo 1 schemes string repeated schemes
0.3       AgentCard 3 url string - url
0.3       AgentCard 9 security Security repeated security
0.3       AgentCard 13 supports_authenticated_extended_card bool - supportsAuthenticatedExtendedCard
0.3       AgentCard 17 signatures AgentCardSignature repeated signatures
0.3       AgentCard 18 icon_url string - iconUrl
0.3       AgentCapabilities 4 state_transition_history bool - stateTransitionHistory
0.3       TaskPushNotificationConfig 1 name string - name
0.3       GetTaskRequest 1 name string - name
0.3       CreateTaskPushNotificationConfigRequest 3 config TaskPushNotificationConfig - config
0.3       ListTaskPushNotificationConfigRequest 1 parent string - parent
0.3       SendMessageResponse 2 msg Message payload message
0.3       StreamResponse 2 msg Message payload message
0.3       StreamResponse 4 artifact_update TaskArtifactUpdateEvent payload artifactUpdate
1.0       SendMessageRequest 1 tenant string - tenant
1.0       SendMessageRequest 2 message Message - message
1.0       SendMessageRequest 3 configuration SendMessageConfiguration - configuration
1.0       SendMessageConfiguration 3 history_length int32 optional historyLength
1.0       SendMessageConfiguration 4 return_immediately bool - returnImmediately
1.0       SendMessageConfiguration 5 if_generation_match int64 optional ifGenerationMatch
1.0       Task 7 generation int64 - generation
1.0       Task 8 timeline TimelineEntry repeated timeline
1.0       TimelineEntry 1 message Message entry message
1.0       TimelineEntry 2 status TaskStatus entry status
1.0       TimelineEntry 3 generation int64 - generation
1.0       SendMessageConfiguration 6 timeline_length int32 optional timelineLength
1.0       ListTasksRequest 9 timeline_length int32 optional timelineLength
1.0       GetTaskRequest 5 timeline_length int32 optional timelineLength
1.0       Artifact 7 start_generation int64 - startGeneration
1.0       Artifact 8 end_generation int64 - endGeneration
1.0       TaskStatusUpdateEvent 4 metadata google.protobuf.Struct - metadata
1.0       TaskStatusUpdateEvent 5 generation int64 - generation
1.0       TaskArtifactUpdateEvent 7 generation int64 - generation
1.0       GetTaskRequest 4 current_generation int64 optional currentGeneration
1.0       Artifact 2 name string - name
1.0       Part 4 data google.protobuf.Value content data
1.0       Message 8 reference_task_ids string repeated referenceTaskIds
1.0       AgentCapabilities 4 extended_agent_card bool optional extendedAgentCard
1.0       AgentCapabilities 5 bidi_streaming bool optional bidiStreaming
1.0       AgentCard 3 supported_interfaces AgentInterface repeated supportedInterfaces
1.0       AgentCard 14 icon_url string optional iconUrl
1.0       ListTaskPushNotificationConfigsRequest 4 tenant string - tenant
1.0       TaskPushNotificationConfig 4 url string - url
1.0       AuthenticationInfo 1 scheme string - scheme
1.0       OAuthFlows 5 device_code DeviceCodeOAuthFlow flow deviceCode
1.0       SecurityScheme 3 oauth2_security_scheme OAuth2SecurityScheme scheme oauth2SecurityScheme
1.0       OAuth2SecurityScheme 3 oauth2_metadata_url string - oauth2MetadataUrl
1.0       StreamResponse 3 status_update TaskStatusUpdateEvent payload statusUpdate
live-1975 LiveRequest 1 message SendMessageRequest payload message
live-1975 LiveRequest 2 frame MediaFrame payload frame
live-1975 LiveResponse 1 event StreamResponse payload event
live-1975 MediaFrame 1 part Part - part
live-1975 MediaFrame 2 seq_num uint64 - seqNum
live-1975 MediaFrame 3 modality_index uint32 - modalityIndex
live-1975 MediaFrame 4 event Event - event
live-1975 ModalitySpec 4 sample_rates int32 repeated sampleRates
live-1975 LiveSessionOffer 2 max_session_duration google.protobuf.Duration - maxSessionDuration
live-1975 SendMessageConfiguration 5 live_session LiveSessionOffer - liveSession
live-1975 AgentCapabilities 5 bidi_streaming bool optional bidiStreaming
live-1975 AgentCapabilities 6 live_session LiveSessionCapabilities - liveSession
live-2153 StreamRequest 1 tenant string - tenant
live-2153 StreamRequest 2 message Message payload message
live-2153 StreamRequest 3 artifact_update TaskArtifactUpdateEvent payload artifactUpdate
live-2153 StreamRequest 4 metadata google.protobuf.Struct - metadata
live-2153 StreamResponse 5 message_update TaskMessageUpdateEvent payload messageUpdate
live-2153 TaskMessageUpdateEvent 5 generation int64 - generation
live-2153 TimelineEntry 2 status TaskStatus entry status
live-2153 Task 8 timeline TimelineEntry repeated timeline
live-2153 Task 9 elicitations Elicitation repeated elicitations
live-2153 Artifact 8 end_generation int64 - endGeneration
live-2153 Artifact 9 role Role - role
live-2153 TaskStatus 4 elicitations Elicitation repeated elicitations
live-2153 Message 9 elicitation_ids string repeated elicitationIds
live-2153 SendMessageConfiguration 5 if_generation_match int64 optional ifGenerationMatch
live-2153 SendMessageConfiguration 6 timeline_length int32 optional timelineLength
live-2153 GetTaskRequest 5 timeline_length int32 optional timelineLength
live-2153 ListTasksRequest 9 timeline_length int32 optional timelineLength
live-2153 TaskPushNotificationConfig 7 protocol_version string - protocolVersion
rpc       Status 3 details google.protobuf.Any repeated details
rpc       ErrorInfo 1 reason string - reason
rpc       BadRequest 1 field_violations FieldViolation repeated fieldViolations
"""
"""Line, message, number, name, type, label (`optional`, `repeated` or the oneof), JSON name."""

ABSENT = """
0.3        StreamResponse           5
0.3        SendMessageRequest       4
0.3        Artifact                 2
0.3        Task                     7
1.0        StreamResponse           5
1.0        Task                     9
1.0        Artifact                 9
live-1975  StreamResponse           5
live-2153  AgentCapabilities        5
"""
"""Numbers that a line does not use, though another one does."""

METHODS = {
    ("0.3", "TaskSubscription"): ("TaskSubscriptionRequest", "StreamResponse", False, True),
    ("0.3", "GetAgentCard"): ("GetAgentCardRequest", "AgentCard", False, False),
    ("0.3", "ListTasks"): ("ListTasksRequest", "ListTasksResponse", False, False),
    ("1.0", "CreateTaskPushNotificationConfig"): (
        "TaskPushNotificationConfig",
        "TaskPushNotificationConfig",
        False,
        False,
    ),
    ("1.0", "DeleteTaskPushNotificationConfig"): (
        "DeleteTaskPushNotificationConfigRequest",
        "Empty",
        False,
        False,
    ),
    ("1.0", "SendLiveMessage"): ("SendMessageRequest", "StreamResponse", True, True),
    ("1.0", "ReconnectToTask"): ("SendMessageRequest", "StreamResponse", True, True),
    ("live-1975", "SendLiveMessage"): ("LiveRequest", "LiveResponse", True, True),
    ("live-2153", "SendLiveMessage"): ("StreamRequest", "StreamResponse", True, True),
}
"""Request, response, whether the client streams, whether the agent streams."""

SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def type_of(field: Any) -> str:
    described = field.message_type or field.enum_type
    if described is None:
        return SCALARS[field.type]
    full: str = described.full_name
    return full if full.startswith("google.protobuf.") else full.rsplit(".", 1)[1]


def label_of(field: Any) -> str:
    oneof = field.containing_oneof
    if oneof is not None:
        return "optional" if oneof.name == f"_{field.name}" else oneof.name
    message = DescriptorProto()
    field.containing_type.CopyToProto(message)
    label = next(each.label for each in message.field if each.number == field.number)
    return "repeated" if label == FieldDescriptorProto.LABEL_REPEATED else "-"


@pytest.mark.parametrize(
    "row", ROWS.strip().splitlines(), ids=lambda row: ".".join(row.split()[:4])
)
def test_field(row: str) -> None:
    """The field has this name, type, label and JSON name."""
    expected: list[str]
    line: Any
    line, message, number, *expected = row.split()
    field: Any = message_class(line, message).DESCRIPTOR.fields_by_number[int(number)]
    assert [field.name, type_of(field), label_of(field), field.json_name] == expected


@pytest.mark.parametrize("row", ABSENT.strip().splitlines(), ids=lambda row: ".".join(row.split()))
def test_absent(row: str) -> None:
    """The number is free in this line."""
    line: Any
    line, message, number = row.split()
    assert int(number) not in message_class(line, message).DESCRIPTOR.fields_by_number


@pytest.mark.parametrize(("line", "method"), METHODS)
def test_method(line: Any, method: str) -> None:
    """The operation takes and gives these messages, as a stream or not."""
    service: Any = pool(line).FindServiceByName(f"{SCHEMA_SETS[line].package}.A2AService")
    found = service.methods_by_name[method]
    actual = (
        found.input_type.name,
        found.output_type.name,
        found.client_streaming,
        found.server_streaming,
    )
    assert actual == METHODS[line, method]


@pytest.mark.parametrize("line", [line for line in SCHEMA_SETS if line != "rpc"])
def test_task_states(line: Any) -> None:
    """State 5 is the one whose spelling changed; all others are the same in every line."""
    states: Any = pool(line).FindEnumTypeByName(f"{SCHEMA_SETS[line].package}.TaskState")
    names = [
        states.values_by_number[number].name.removeprefix("TASK_STATE_") for number in range(9)
    ]
    canceled = "CANCELLED" if line == "0.3" else "CANCELED"
    assert names == [
        *["UNSPECIFIED", "SUBMITTED", "WORKING", "COMPLETED", "FAILED", canceled],
        *["INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"],
    ]
