include $(sort $(wildcard $(BR2_EXTERNAL_BAREWIRE_PATH)/package/*/*.mk))
