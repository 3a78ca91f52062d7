"""Required members of each message: the `.proto` files mark them in a way that descriptors do not
keep."""

REQUIRED_MEMBERS = {
    "SendMessageRequest": "message",
    "Task": "id status",
    "TaskStatus": "state",
    "Message": "messageId role parts",
    "Artifact": "artifactId parts",
    "TaskStatusUpdateEvent": "taskId contextId status",
    "TaskArtifactUpdateEvent": "taskId contextId artifact",
    "TaskMessageUpdateEvent": "taskId contextId message",
    "Elicitation": "elicitationId state",
    "MediaFrame": "part",
    "AuthenticationInfo": "scheme",
    "TaskPushNotificationConfig": "url",
    "GetTaskRequest": "id",
    "CancelTaskRequest": "id",
    "SubscribeToTaskRequest": "id",
    "GetTaskPushNotificationConfigRequest": "taskId id",
    "DeleteTaskPushNotificationConfigRequest": "taskId id",
    "ListTaskPushNotificationConfigsRequest": "taskId",
    "ListTasksResponse": "pageSize",
    "AgentCard": "name description supportedInterfaces version capabilities defaultInputModes "
    "defaultOutputModes "
    "skills",
    "AgentInterface": "url protocolBinding protocolVersion",
    "AgentProvider": "url organization",
    "AgentSkill": "id name description tags",
    "AgentCardSignature": "protected signature",
    "APIKeySecurityScheme": "location name",
    "HTTPAuthSecurityScheme": "scheme",
    "OAuth2SecurityScheme": "flows",
    "OpenIdConnectSecurityScheme": "openIdConnectUrl",
    "AuthorizationCodeOAuthFlow": "authorizationUrl tokenUrl scopes",
    "ClientCredentialsOAuthFlow": "tokenUrl scopes",
    "DeviceCodeOAuthFlow": "deviceAuthorizationUrl tokenUrl scopes",
}
"""REQUIRED in 1.0 (section 5.7). Of the answer to ListTasks only the members that every valid
answer has (Q-07)."""
REQUIRED_MEMBERS_0_3 = {
    "SendMessageRequest": "message",
    "AgentCardSignature": "protected signature",
}
"""REQUIRED in 0.3 (manual/protocol.md "Fields of 0.3"), except members that are in the path."""
