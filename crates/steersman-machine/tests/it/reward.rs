//! Rewards: the names that they may read.

use steersman_machine::search::reward::Reward;
use steersman_testkit::log::network;

#[test]
fn each_name_of_a_reward_exists() {
    let network = network(
        "name: desk\nconfig: { most: { default: 5 } }\nstate: { count: { type: integer, default: 0 } }\n\
         tools: { look: { description: Looks., effect: read, native: 1 } }\n\
         agents: { desk: { system: S., tools: [look] } }\n",
    );
    let read = "state.count + calls.look.ok + config.most";
    assert!(Reward::read(read, &network).is_ok());
    for (source, why) in [
        ("state.other", "`desk` has no state `other`"),
        ("calls.other.ok", "`desk` has no tool or agent `other`"),
        ("config.other", "`desk` has no config `other`"),
    ] {
        assert_eq!(Reward::read(source, &network).unwrap_err(), why);
    }
}
