"""What opening models refuses before anything is loaded."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assistant.app.config import PROFILES, load_config
from assistant.app.models import _gpu_room
from assistant.base.errors import SettingError


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_packing_for_a_processor_is_refused_on_a_gpu(dtype: str) -> None:
    context: Any = SimpleNamespace(device=torch.device("cuda"))
    config = load_config({"dtype": dtype}, {})
    with pytest.raises(SettingError, match=f"dtype {dtype} .*--device cpu"):
        _gpu_room(config, PROFILES["desk"], context, print)
