//! What a namespace calls another one: the numbers that stand beside the indices of devices that are elsewhere.

use std::os::fd::{AsFd as _, AsRawFd as _};

use futures_util::StreamExt as _;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    RouteNetlinkMessage,
    nsid::{NsidAttribute, NsidMessage},
};
use rtnetlink::Handle;

use super::error::checked;
use crate::host::{HostError, netns::Netns};

/// The number that the handle's namespace has for another one.
pub(super) async fn id_of(handle: &Handle, netns: &Netns) -> Result<Option<i32>, HostError> {
    let mut question = NsidMessage::default();
    question.attributes.push(NsidAttribute::Fd(netns.as_fd().as_raw_fd() as u32));
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetNsId(question));
    message.header.flags = NLM_F_REQUEST;
    let operation = || "ask for a namespace's number".to_owned();
    let mut answers = checked(handle.clone().request(message), operation)?;
    while let Some(answer) = answers.next().await {
        match answer.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNsId(told)) => {
                let id =
                    told.attributes.iter().find_map(|a| if let NsidAttribute::Id(id) = a { Some(*id) } else { None });
                // -1: none was given.
                return Ok(id.filter(|id| *id >= 0));
            }
            NetlinkPayload::Error(error) => {
                return checked(Err(rtnetlink::Error::NetlinkError(error)), operation);
            }
            _ => {}
        }
    }
    Ok(None)
}
